"""The demonstration of `make demo`: the recommended recipe beside a plain run, on scikit-learn's digits."""
