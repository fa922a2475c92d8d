"""Wiki search: an encyclopedia to look things up in, and questions whose answers are known exactly."""
