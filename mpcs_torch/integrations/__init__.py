"""Parts for other frameworks, one framework per module; importing this package imports none of them.

`lightning`, `huggingface`, `ignite` and `sklearn` hold the parts that those frameworks need. Accelerate needs none: its
script in ``examples/`` shows the calls, and `mpcs_torch.learning.MPCSLR` refuses to be stepped once for each process.
"""
