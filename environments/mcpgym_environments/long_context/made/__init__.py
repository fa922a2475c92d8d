"""Made texts of any length, and questions about them with exact answers."""
