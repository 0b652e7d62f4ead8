"""Settings of every test. What single tests need lives in `tests/support`, by name, and not here by magic."""

from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine and nothing about the product.
settings.register_profile(
    "recalld",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("recalld")
