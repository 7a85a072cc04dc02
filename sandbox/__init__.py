"""Where a deployment's source is shown and its code runs; the only place that starts processes."""
