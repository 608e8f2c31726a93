"""A package, so that pytest puts tests/ on sys.path for conftest.py and not this folder: its torch/ would pass for
PyTorch where that is not installed. The folders in it are none; their files have names of their own."""
