"""Search over sections: what a query means, the engines that find, and the snippets that show why."""
