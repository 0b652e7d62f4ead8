"""recalld."""
