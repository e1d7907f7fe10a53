"""Pages and tables that a person reads."""
