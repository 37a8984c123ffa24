"""What the flows do, in plain functions that know no Prefect: they run anywhere, and in tests."""
