"""Ray: servers as its actors, and evaluations split over its processes. Ray itself is imported when it is asked for."""
