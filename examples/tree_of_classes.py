"""Costs by height in the tree of CIFAR-100: two simulated models are right equally often, but one errs less far.

The tree has three levels: the root, the 20 superclasses of Krizhevsky (Learning Multiple Layers of Features from Tiny
Images, 2009), and their 100 classes. For docs/concepts/concern.md.
"""

import torch

from mpcs_torch import evaluate
from mpcs_torch.concern import spec_from_heights

TREE = {
    "aquatic mammals": ["beaver", "dolphin", "otter", "seal", "whale"],
    "fish": ["aquarium fish", "flatfish", "ray", "shark", "trout"],
    "flowers": ["orchid", "poppy", "rose", "sunflower", "tulip"],
    "food containers": ["bottle", "bowl", "can", "cup", "plate"],
    "fruit and vegetables": ["apple", "mushroom", "orange", "pear", "sweet pepper"],
    "household electrical devices": [
        "clock",
        "keyboard",
        "lamp",
        "telephone",
        "television",
    ],
    "household furniture": ["bed", "chair", "couch", "table", "wardrobe"],
    "insects": ["bee", "beetle", "butterfly", "caterpillar", "cockroach"],
    "large carnivores": ["bear", "leopard", "lion", "tiger", "wolf"],
    "large man-made outdoor things": ["bridge", "castle", "house", "road", "skyscraper"],
    "large natural outdoor scenes": ["cloud", "forest", "mountain", "plain", "sea"],
    "large omnivores and herbivores": [
        "camel",
        "cattle",
        "chimpanzee",
        "elephant",
        "kangaroo",
    ],
    "medium-sized mammals": ["fox", "porcupine", "possum", "raccoon", "skunk"],
    "non-insect invertebrates": ["crab", "lobster", "snail", "spider", "worm"],
    "people": ["baby", "boy", "girl", "man", "woman"],
    "reptiles": ["crocodile", "dinosaur", "lizard", "snake", "turtle"],
    "small mammals": ["hamster", "mouse", "rabbit", "shrew", "squirrel"],
    "trees": ["maple tree", "oak tree", "palm tree", "pine tree", "willow tree"],
    "vehicles 1": ["bicycle", "bus", "motorcycle", "pickup truck", "train"],
    "vehicles 2": ["lawn mower", "rocket", "streetcar", "tank", "tractor"],
}


def main() -> None:
    """Print the cost of three mistakes, and accuracy and mean severity of two models."""
    concern = spec_from_heights(
        TREE, dangerous=1
    )  # mistakes across superclasses are dangerous
    place, costs = concern.classes.index, concern.costs()
    for true, decided in (("maple tree", "oak tree"), ("maple tree", "leopard")):
        print(f"{true} taken for {decided} costs {costs[place(true), place(decided)]:g}")

    generator = torch.Generator().manual_seed(0)
    target = torch.randint(100, (4000,), generator=generator)
    siblings = (
        target // 5 * 5 + (target + torch.randint(1, 5, (4000,), generator=generator)) % 5
    )
    others = (target + torch.randint(1, 100, (4000,), generator=generator)) % 100
    is_right = torch.rand(4000, generator=generator) < 0.75
    is_near = torch.rand(4000, generator=generator) < 0.6
    models = {
        "knows the tree": torch.where(
            is_right, target, torch.where(is_near, siblings, others)
        ),
        "does not": torch.where(is_right, target, others),
    }
    print(
        evaluate(models, target, concern=concern, metrics=["accuracy", "mean_severity"])
        .table()
        .markdown()
    )


if __name__ == "__main__":
    main()
