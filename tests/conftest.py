from hypothesis import HealthCheck, settings

# The same examples on every run: a change that breaks a property fails for the one who made it.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("steady")
