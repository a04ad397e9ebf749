"""`--goldens`: accept what is rendered now as what is to be expected."""


def pytest_addoption(parser):
    parser.addoption("--goldens", action="store_true", help="rewrite tests/goldens from the current output")
