"""Adapters for other frameworks, one module for each; importing this package imports none of the frameworks.

The modules are `lightning`, `huggingface`, `ignite`, `skorch` and `sklearn`; each of the first four has a class
`SelectCheckpoint`. Accelerate needs no adapter: see its script in ``examples/``. `mpcs_torch.learning.MPCSLR` raises an
error if Accelerate would step it once for each process.
"""
