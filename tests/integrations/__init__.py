import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before any module imports transformers
