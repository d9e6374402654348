"""Checksums of the published data files."""

SHA256 = {
    "mnist": {
        "MNIST/raw/train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "MNIST/raw/train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "MNIST/raw/t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "MNIST/raw/t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "add": {
        "ADD/X_train.npy": "bd400d992a4365cb8cdb559fa049e47e5082546619c33d152f06ca61000d8652",
        "ADD/Y_train.npy": "efb8eab9103560245b31402b0da82d6ba86f66a8fd45cd5801ffa205cce78886",
        "ADD/X_test.npy": "a84b040fdcfa32b41a902c2b77e8d8731c9692f8969f6aa2c266921894f0b96b",
        "ADD/Y_test.npy": "1f090f71545a32b5a14bd26f923d5ba0e7ddeaf55181839986dfccf257e32cf1",
    },
}
"""By data set, the checksum of each of its files under the data root."""

UCR_SHA256 = {
    "Chinatown": "336103785243d3c04d1a343f81061e73e6e7a7792f003867630e725556589b5c",
    "SmoothSubspace": "7873f06b370102aed8f8efd678c9588056769e97becbdd3aadd4f410b2dcedb1",
}
"""`ucr_checksum` of the paper's UCR sets: of the values read, because the archive has had three layouts."""
