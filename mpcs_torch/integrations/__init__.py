"""Parts for other frameworks, one framework per module; importing this package imports none of them.

`lightning`, `huggingface`, `ignite` and `sklearn` contain the adapters for those frameworks. Accelerate needs none: see
its script in ``examples/``; `mpcs_torch.learning.MPCSLR` raises if it would be stepped once for each process.
"""
