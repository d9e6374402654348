"""The benchmark of costly mistakes: methods of learning and deciding, on the same tasks at the same budgets."""
