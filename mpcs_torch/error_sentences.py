"""The sentence of each error, in one table: a code stands for a rule, whose fields are filled in."""

from collections.abc import Mapping

RULES: Mapping[str, str] = {
    # Numbers
    "at_least": "must be at least {minimum}",
    "at_most": "must be at most {maximum}",
    "between": "must be from {minimum} to {maximum}",
    "from_below": "must be a number from {minimum} to below {maximum}",
    "above_at_most": "must be above {minimum} and at most {maximum}",
    "open_between": "must be above {minimum} and below {maximum}",
    "finite": "must be finite",
    "finite_at_least": "must be finite and at least {minimum}",
    "finite_above": "must be finite and above {minimum}",
    "whole": "must be a whole number",
    "whole_at_least": "must be a whole number of at least {minimum}",
    "number_or_none": "must be a number or None",
    "sum_at_most": "must sum to at most {maximum}",
    "one_above_0": "must be above 0, but both are 0",
    "rank": "must be from 1 to the number of classes ({classes})",
    "above_limit": "must be above the limit {limit} and below 1",
    "seen_within": "must be seen within {labels} labels",
    "inverse_of_whole": "must be 1 divided by a whole number, or None",
    "multiple": "must be None or a multiple of 1 / delta = {number}",
    "below_0_for_shares": "must be below 0 where the target holds shares",
    "matrix_too_large": (
        "must not need a matrix of more than {limit} GiB here, but {number} x {number} numbers take {size} GiB"
    ),
    # Choices and types
    "one_of": "must be one of {choices}",
    "instance": "must be of type {type}",
    "none": "must be None",
    "spec": "must be a ConcernSpec",
    "spec_or_tensor": "must be a ConcernSpec or a tensor",
    "pairs": "must be a ConcernSpec, or a bool tensor that is True for dangerous pairs",
    # Arguments together
    "given_with": "must be given together with {other}",
    "given_or": "or {other} must be given, but both are None",
    "not_with": "must not be given together with {other}",
    "needs": "needs {other}",
    # Shapes and dtypes
    "numbers": "must hold numbers",
    "floating": "must be floating point",
    "shape": "must have shape {shape}",
    "float_shape": "must be floating point of shape {shape}",
    "integer_shape": "must be integers of shape {shape}",
    "trial_shape": "must be integers or bools of shape {shape}",
    "shape_of": "must have the shape of {other}, {shape}",
    "alike": "must be {kind} and have the shape of {other}, {shape}",
    "same_shape": "must have the same shape {shape}",
    "number_or_shape": "must be a number or floating point of shape {shape}",
    "as_many_numbers": "must be finite numbers (K,), as many as {other}",
    "class_dimension": "must have {classes} classes in dimension 1",
    "layout": "must have one of the layouts {layouts}",
    "labels": "must hold integer class indices",
    "classes_or_scores": "must be classes or real scores",
    "scores_to_decide": "must be floating point scores to decide by {decision!r}",
    "binary_scores": "must have shape (N, 2) or hold integer decisions",
    "costs_by_class": "must be costs (N, {classes}, ...), one for each decision",
    "costs_of_soft_labels": "must be (N, C) where labels are soft",
    "row_and_column_each": "must have a row and a column for each of {number} names",
    # Values of samples
    "not_empty": "must not be empty",
    "no_nan": "must hold no NaN",
    "logits": "must be logits without NaN or +inf",
    "log_probabilities": "must be log-probabilities whose exponentials sum to 1 over dimension 1",
    "probabilities": "must be probabilities >= 0 that sum to 1 over dimension 1",
    "scores_or_decisions": "{scores}, or decisions {decisions}",
    "finite_logits": "must be finite logits",
    "class_indices": "must hold class indices from 0 to {last}",
    "class_indices_or": "must hold class indices from 0 to {last}, or ignore_index ({ignored})",
    "decisions_or_scores": "must hold class indices {decisions}, or scores without NaN",
    "decisions": "must be decisions {decisions}",
    "classes_only": "from 0 to {last}",
    "with_referral": "from 0 to {last} ({referred} for a referral)",
    "with_answers": "from 0 to {last} ({referred} for a referral, to {last_answer} for coarse answers)",
    "trial_labels": "must hold 0 for non-targets and 1 for targets",
    "both_kinds": "must hold targets and non-targets, but holds no {missing}{of}",
    "chance": "must be from least_chance to 1",
    "risk_or_unknown": "must be from 0 to 1, or NaN where it is not known",
    "degrees": "must hold degrees of truth from 0 to 1",
    "shares_of_annotators": "must hold shares of annotators that sum to 1, for metrics that count classes",
    "finite_shares": "must hold finite shares of each class, at least 0",
    "finite_costs": "must hold {number} finite costs for each sample",
    "one_dimension": "must have one dimension, but has more",
    "name_for_each": "must be one name for each of the {rows} rows",
    "named": "must have a name for every row",
    "mapping_of_names": "must map columns to the names of rows",
    "loss_or_unknown": "must be from 0 to 1, or NaN without a label",
    "known_if_certain": "must be known where the chance is 1",
    "whatever_the_error": (
        "must be the probability with which each sample was chosen, whatever its error, but there are too {excess} "
        "{what}: {known} are known in all, where {expected} are expected"
    ),
    # Matrices and vectors
    "weights_off_diagonal": "must hold finite weights above 0 off its diagonal",
    "costs_off_diagonal": "must hold finite costs >= 0 off its diagonal",
    "some_cost": "must hold a cost above 0 off its diagonal, but all are 0",
    "distribution": "must be at least 0 and sum to 1",
    "positive_distribution": "must be above 0 and sum to 1",
    "class_weights": "must hold finite weights of at least 0, one per class",
    "counts": "must be whole numbers from 0 on, of which one is above 0",
    "sums_of_losses": "must be sums of losses from 0 to 1, so at least 0 and at most samples",
    "nowhere_above": "must nowhere be above {other}",
    "some_classes": "must be some, but not all, of the classes 0 to {last}",
    "holds_at_least": "must hold at least {minimum} {unit}",
    # Calibration
    "no_optimum": (
        "must overlap to be calibrated, but {steps} Newton steps found no finite optimum: the scores may separate "
        "targets from non-targets"
    ),
    "separated": "must overlap to be calibrated, but a threshold separates targets from non-targets without error",
    "dependent": "must separate the classes, but the statistics of {method!r} are linearly dependent",
    "each_class_twice": "must contain each class at least {twice}, but classes {classes} are rarer",
    "finite_sample": "must have finite logits of at least two samples",
    "cohort": "must hold two scores that differ for each name, but names {names} have none",
    "curve_shapes": "must hold coverage and risk of one shape (N,) for {name!r}",
    # States of metrics and calibrations
    "not_updated": "needs at least one batch",
    "not_fitted": "must be fitted before it is called",
    "other_settings": "must come from a {type} with the same settings, but does not",
    "other_detectors": "must have {ours}, but has {theirs}",
    "other_points": "must have the operating points {points}",
    "no_threshold": "must have seen targets and non-targets, but has no threshold",
    # Metrics by name
    "metric_name": "must be one of {names}, or [name=]package.module:Class(setting=value)",
    "unknown_metric": "must be a name of `mpcs metrics`, or [name=]package.module:Class(setting=value)",
    "metric_class": "must name a torchmetrics Metric class",
    "metric_settings": "must be written as Class(setting=value)",
    "recorded_scalar": "must compute a scalar to be recorded",
    # Rules of decision, losses, schedules and selection
    "below": "must be below {maximum}",
    "number": "must be a number",
    "text": "must be text",
    "mapping": "must be a mapping",
    "list_of_names": "must be a list of names",
    "list_of_thresholds": "must be finite numbers, or a dictionary of these by detector",
    "shares_in_order": "must be shares, 0 <= begin < end <= 1",
    "finite_in_order": "must be finite with 0 <= lowest <= highest",
    "sizes": "must be one or more whole numbers of at least 1",
    "needs_patience": "needs patience, and must otherwise be 0",
    "no_epoch": "must be a whole number",
    "reserved_metric": "must name no metric {name!r}, which is an argument of update",
    "directed_metrics": "must name metrics with a direction",
    "direction": "must be 'min', 'max' or a Metric with higher_is_better",
    "direction_of": "must say which way is better for {name!r}",
    "directions_of": "needs the direction of {without}, but directions has only {known}",
    "limit_of_best": (
        "must limit metrics for which {better} values are better, but {name!r} is not one: use {other}"
    ),
    "misspelt_limit": "must name a metric of directions, or one of an unlike name, but names {name!r}",
    "mapping_of_metrics": "must map names of metrics to values",
    "distances": "must contain distances >= 0",
    "json_line": "is empty, cut off or not JSON",
    "keys_of_line": "lacks {missing}",
    "named_after_epoch": "must be named after it",
    "scheduler_state": "must be that of an MPCSLR, but lacks {missing}",
    "limit_type": "must be of type Limit",
    "requirement_type": "must be str or Requirement, an argument for each",
    "limits_or_bool": "must be a bool, a Limit or several of them",
    "some_limits": "must be one or more Limits of errors or costs",
    "limits_of_one_class": (
        "must only be given with limits on single true classes, which hold at any class frequencies, not with {limits}"
    ),
    "below_highest_loss": "must be below the highest possible loss, {highest}",
    "below_highest_cost": "must be below the highest cost, {highest}",
    "comparable_costs": "must be 0 or at least a millionth of the highest, {highest}",
    "no_whole": "must be False for a concern with coarse answers, which are of one position",
    "costs_as_fitted": (
        "must be given if they were in the fit (--cost-columns); a rule with limits takes none if they were not"
    ),
    "no_limit_of_costs": "must not be on costs where each sample has costs of its own, whose highest is not known",
    "columns_of_limits": "must have the columns of the limits, {columns}",
    "clusters_of_limits": "must be given for limits per cluster, {limits}",
    "per_sample": "must be per sample",
    "groups_of_column": "must name those of the column {name!r}",
    "has_column": "must have the column {name!r}",
    "row_for_each_class": "must have a row for each class",
    "matrix_for_each_limit": "must have a matrix for each limit",
    "threshold_range": "must be from 0 to 1, -inf or inf",
    "of_concern": "must be those of the concern",
    "covers_classes": "must cover {classes} classes",
    "equal_shapes": "must be of one model or more, with equal shapes",
    "includes": "must include those of {name!r}",
    "of_members": "must be of {members} models",
    "some_label": "must have a label other than ignore_index",
    "takes_no_weights": "must be left out: {metric} takes none",
    "costs_by_true_class": "must be by true class, {shape}",
    "none_for_soft_labels": "must be None where labels are soft",
    "says_which_is_dangerous": "must say which class is dangerous to miss",
    "class_at_risk": "must have a class that is dangerous to miss, and whose opposite error is not dangerous",
    "below_where_known": "must be below {maximum}, and below 0 where it is not known",
    "known_before_class": (
        "must be known before the true class is, but are 0 for class {label} where it is the true class, and only there"
    ),
    "every_class_for_priors": "must contain every class to correct for priors, but lacks {absent}",
    "pairs_of_names": "must be pairs of class names",
    "pairs_with_arrows": "must be pairs like red->green, separated by commas",
    "different_classes": "must be pairs of different classes",
    "kind_of_errors": "must be 'dangerous', 'any', 'cost' or pairs of class names",
    "none_for_costs": "must be None for costs, whose limit holds in expectation",
    "given_for_decided": "must be given for a limit of {of}, which cannot hold in expectation",
    "name_of_class": "must not be the name of a class",
    "limited_samples": "must be one of {choices}, or {decided} and a class",
    "reads_like": "must read like {example}",
    "has_confidence": "must have a confidence",
    "below_limit": "must be at least 0 and below the limit {limit}",
    "far_below_limit": "must be far enough below the limit to need at most {maximum} counted samples",
    "share_of_all": "must be 1 for a limit of all samples",
    "same_arguments": "must be a {type} with the same arguments, but is not",
    "monitored": "must be one of {choices}",
    "never_merged": "cannot be merged, because the order of samples matters",
    "reason_to_stop": "must return None, or a text that says why the run stops",
    # Evaluation
    "groups_by_column": "must be a dictionary by column, such as {{'site': sites}}",
    "needs_requirements": "needs requirements, and a model that is not a reference",
    "unknown_method": "must be that of a calibration",
    "plain_names": "must differ, and have no control characters",
    "names_among": "must hold names among {known}",
    "different_names": "must have different names",
    "none_for_numbers": "must be None where target holds numbers",
    "list_of_metrics": "must be a list, [metric], or a dictionary by name",
    "kind_of_metric": "must be names or entries of the register, Metrics, or functions by name, {{'name': function}}",
    "two_probabilities": "needs probabilities of two",
    "implied_thresholds": "must imply thresholds above 0 and below 1",
    "names_class": "must name a class, or a group of classes of a concern, one of {classes}",
    "misspelt_class": "must name a class, or a group of classes of a concern",
    "known_setting": "must be those of metrics",
    "decisions_of_soft_labels": "has soft labels, but decisions need one class for each row",
    "costs_of_no_metric": "has costs of rows, but no metric takes them",
    "weights_of_ranges": "has weights of rows, but costs must be known, not ranges",
    "annotators_of_ranges": "has soft labels, which are shares of annotators, but costs must be known, not ranges",
    "no_soft_labels": "has one class for each row, but {metrics} must have soft labels",
    "no_costs": "has no costs of rows, but {metrics} must have them",
    "no_probabilities": "has predicted labels alone, but {metrics} must have the probability of each class",
    "has_referrals": (
        "has referrals or coarse answers among its decisions, but {metrics} must have a class for each row"
    ),
    "has_weights": "has weights of rows, but {metrics} takes none",
    "has_annotators": "has soft labels, which are shares of annotators, but {metrics} takes none",
    "too_many_classes": "has too many classes, but {metrics} must have at most {maximum}",
    "predicted_classes": "must have the classes of the predictions, {classes}",
    "one_column_of_clusters": "must be (N,) names",
    "two_columns_of_clusters": "must be (N,) names, or two columns of them",
    "needs_positions": "must be True for samples with several positions, such as pixels",
    "same_columns": "must be the same columns in every batch of every model",
    "given_for_every_batch": "must be given for every batch or for none",
    "another_evaluation": "must be another Evaluation",
    "max_weight": "must be at least the largest weight of these rows, or clusters, {heaviest:.6g}",
    "same_evaluation": "must be an Evaluation with the same classes, concern, metrics and settings",
    "clusters_as_here": "must have clusters if and only if this Evaluation has them",
    "no_further_models": "must have no further models",
    "same_groups": "must have the same columns of groups",
    "same_rows": "must have the same rows and labels, in the same parts, to be compared",
    "some_row": "needs at least one row with a weight above 0",
    "names_of_decisions": "or concern must be given for decisions, to name the classes",
    "uses_weights": "must use rows.weights, but they do not change its value",
    "fewer_groups": "must have fewer groups: their sums take more than {limit} GiB",
    "sign_and_limit": "must be one of {choices}, and limit finite",
    "limit_in_range": "must be one that a value can keep and violate",
    "limit_in_percent": "must be one that a value can keep and violate",
    "measured": "must be one of {known}",
    "named_rate": "of a class must be named to be measured by group: add it to --metrics (metrics=[...])",
    "compared_by": "are compared by {compared}",
    "rates_compared_by": "are compared by {compared}",
    "numbered_classes": "must be one of {choices}",
    "column_for_each_class": "must have a column for each class, {classes}",
    "labels_second": "must hold labels",
    "classes_second": "must hold one class for each row where preds are decisions",
    "preds_first": "must be probabilities (N, C), also of two classes, or decisions (N,), as integers or names",
    "both_classes": "must be probabilities (N, C), also of two classes, or decisions (N,), as integers or names",
    "names_all_classes": "must name all classes, {classes}",
    "shares_with_sum_1": "must be {number} shares with the sum 1",
    "needs_classes": "needs one class for each row, but target has soft labels",
    "needs_rows_of": "needs rows of each class that has a share, but there are none of {absent}",
    "order_of_severity": "needs classes in an order of severity, but by the costs of concern some form a cycle",
    "combination": "must be 'mean', 'worst' or a function",
    "combination_of_scores": "must be 'mean' or 'worst' for scores of detectors, but is a function",
    "combined": "must return {number} probabilities for the rows of each unit, here of {unit!r}",
    "same_in_unit": "must be the same in all rows of a unit, but those of unit {unit} differ",
    "same_decisions_in_unit": "must be the same in all rows of a unit, but those of unit {unit} differ",
    "same_costs_in_unit": "must be the same in all rows of a unit, but those of unit {unit} differ",
    "computes_tensor": "must compute a tensor",
    "computes_scalar": "must compute a scalar",
    "with_interval": "must have an interval, but {metric} has none: {reason}",
    "merges": "must have states that merge, but {reason}",
    "metric_of_sums": "needs a metric of sums, but {metric} has other states",
    "directed_metric": "must be a Metric whose higher_is_better is True or False",
    "no_sync_on_step": "must have dist_sync_on_step=False",
    "group_of_each_row": "must be integers from 0 to {last}, one for each row",
    # Files of predictions and trials
    "columns_at_most": "must have at most {maximum} columns",
    "arff": "must have columns (@attribute) and rows (@data), as ARFF tables have",
    "dense_rows": "has sparse rows, which are not read",
    "column_types": "must not have columns of the type {type}",
    "all_values": "must have all values of its shape {shape}",
    "records": "must contain records, or a list for each column",
    "trials": (
        "must have the names of models and segments, in one of {pairs}; and scores in one of {scores}, or labels in "
        "{labels}, or in {targets} and {nontargets}"
    ),
    "dataset": "must have {name!r}, a dataset with a shape",
    "in_file": "must be in the file itself, but is in other files",
    "stored": "must be stored completely, but values are missing",
    "names": "must be a list of different names, none of them empty",
    "matrix_of_trials": "must be a matrix {shape} of {kind}, as there are models and segments",
    "number_in_mask": "must have a number where {mask} is not 0, but has 'nan'",
    "target_or_not": "must be target or non-target, but one is in {targets} and in {nontargets}",
    # Ways to read a file of predictions: these sentences are whole
    "several": "can be read in several ways",
    "stacked": "seems to have several models below each other, told apart by {columns!l}: its labels repeat",
    "no_labels": "has no column of labels that is known by its name or values (--label-column COLUMN names it, "
    "--labels FILE gives a file of labels)",
    "no_scores": "has no columns of scores or predicted labels that are known by their names (--score-columns or "
    "--decision-column names them)",
    "no_trial_labels": (
        "has no column of labels that is known by its name or values (--label-column COLUMN names it, --target-label "
        "the label of targets, --labels FILE gives a file of labels)"
    ),
    "no_trial_scores": "has no column of scores that is known by its name or values (--score-column names it)",
    "labels_of_matrix": "contains no labels: give a Key, or a list of trials, with --labels FILE",
    "not_scores": "no name says that {column!r} has scores",
    "which_target": "{column!r} has the labels {labels!t}: which are those of targets?",
    "named_target": (
        "{score!r} is named after the label {label!r} of {column!r}, which no word calls that of targets"
    ),
    "no_target": "{column!r} has no label {label!r} of --target-label, but {labels!t}",
    "target_words": (
        "the labels {labels!t} of {column!r} are not all words of targets or of non-targets: --target-label names the "
        "label of targets"
    ),
    "both": "column {column!r} cannot be labels and name groups or rows, too",
    "confusion": "seems to be a confusion matrix, which `mpcs score --confusion` reads",
    "quoted_lines": "has each line in quotes, which makes one column of it, {column!r}: remove the quotes around lines",
    "nested": "{column!r} has lists or dictionaries, such as {value!r}: write a column for each key, and where a "
    "sample has several labels, a column of 0 and 1 for each of them",
    "printed_arrays": "has numbers in brackets without commas, as numpy prints arrays: write a row for each sample, "
    "with commas between the numbers and without brackets",
    "repeated_header": "has its header again among its rows: remove such lines",
    "many_rows": "{column!r} has the labels of several rows in each cell: write a row for each, as pandas' explode "
    "does for {columns!t}",
    "not_labels": "no name says that {column!r} has labels",
    "not_probability": "no name says that {column!r} has a probability",
    "not_decisions": "no name says that {column!r} has predicted labels",
    "sums": "{columns!t} are not scores that sum to 1: the first rows sum to {low} to {high}",
    "best_class": "{column!r} is always the class with the highest score: are these the predicted labels?",
    "above_half": "{column!r} is never below 0.5: is it the score of the predicted label?",
    "falling": "{columns!t} fall in each row: of the best classes of each row? A score for each class is needed",
    "which_number": "labels are numbers, and {columns!t} have names: which class is {first!r}?",
    "which_order": (
        "{columns!t} has no names of classes: --classes names all {size} in their order, {labels!t} among them"
    ),
    "which_class": "of which class is {column!r} the probability?",
    "first_number": "labels are never 0 and never {size}, so the first class may be 0 or 1",
    "by_place": "labels are {labels!t}, and columns are named {classes!t}",
    "one_label": "{column!r} has the label {labels!t} alone: --classes names both",
    "many_labels": "{score!r} is one score, which tells two classes apart, but {column!r} has {labels!t}: the rarest, "
    "{rare!r}, is in {number} rows",
    "no_class": "the labels {labels!t} of {column!r} are none of the classes {classes!t}",
    "beyond": "{column!r} has numbers below 0 or above 1, which are no probabilities (`mpcs detect` takes any scores)",
    "unordered": "{column!r} does not order the predicted labels {decision!r}: it is no probability of one class",
    "label_gap": (
        "{column!r} has {text!r}, which may be a missing value or a class: --missing drop, or --classes names all"
    ),
    "cases": "{labels!t} differ in case alone: write them alike, or --classes names all classes",
    "kinds": "{column!r} has values of several kinds, {labels!t}",
    "referral": "{column!r} has referrals: --concern FILE says what they cost, and names the classes and answers",
    "disjoint": "the predicted labels {decisions!t} of {column!r} and the labels {labels!t} have none in common",
    "cost_order": (
        "--cost-columns are in the order of the classes, which nothing in the file says: --classes or --concern names "
        "{classes!t} in the order of {columns!t}"
    ),
    "two_codes": (
        "{column!r} has predicted labels {decisions!t}, and the labels are {labels!t}: if these are two codes of the "
        "same classes, write them alike; if they are not, --classes names all classes"
    ),
    "other_truth": "the degrees of truth are for {truth!t}, and the scores for {classes!t}",
    # Files of predictions and trials: formats, rows and names
    "accepted": "{error}",
    "readable": "cannot be read: {reason}",
    "utf_8": "cannot be read: {error}; save it as UTF-8",
    "utf_8_in_line": "cannot be read: {error}, which is in line {line}; save it as UTF-8",
    "not_so_deep": "must not be nested so deeply",
    "requires": "requires {package}: pip install 'mpcs_torch[{extra}]'",
    "known_format": "is a binary file of no known format",
    "begins_as_text": "begins with {start!r}, as files of another format do",
    "pointer": "is a pointer of Git LFS, not the file itself: git lfs pull fetches it",
    "report_of_weka": "is a report of Weka, not a table: write the predictions as csv instead",
    "arrow_file": "is an arrow file, which is not read: write it as parquet",
    "named_records": "must contain records with names of columns",
    "tensors_by_name": "must contain a dictionary with tensors, such as preds and target",
    "splits": "{column!r} has rows of {names!t}, measured together (--by measures each)",
    "object_arrays": "has only arrays of Python objects, {names!l}: save numbers with a dtype of numbers, and texts "
    "with astype('U')",
    "array_of_numbers": "must contain an array (N,) or (N, C) of numbers, but has {shapes}",
    "given_twice": "is given twice, but each model must have a file of its own",
    "rows": "has no rows",
    "rows_below_header": "has a header, but no rows",
    "rows_in_file": "has no rows: the file is empty",
    "rows_in_sheet": "has no rows: the first sheet is empty",
    "rows_of_trials": "contains no rows",
    "number_of_columns": "must have at most {maximum} columns, but has {number}",
    "length_of_names": "names of columns must have at most {maximum} characters, but one has {length}",
    "length_of_value": "a value must have at most {maximum} characters, but one has more",
    "printable_names": "names of columns must not have control characters, but one is {name!r}",
    "different_columns": "columns must have different names, but {names} repeat",
    "all_values_of_row": "is missing: the row has {number} of {names} values",
    "name_of_value": "has no name: the row has {number} values",
    "has_named_column": "has no column {name!r} of {option}; it has {columns!l}",
    # Values of their columns
    "missing_value": "is missing (--missing drop leaves such rows out)",
    "missing_decision": "is missing (--missing drop leaves such rows out; a word such as unknown in its place counts "
    "as an error)",
    "missing_score": "is missing",
    "of_columns": "{columns!l} {rule}",
    "other_scores": (
        "{rule} (--logits reads logits; --score-columns names other columns; of several labels, `mpcs detect` scores "
        "one)"
    ),
    "one_probability": (
        "must be the probability of one class, from 0 to {highest} (`mpcs detect` takes scores of any range; --logits "
        "reads logits; --score-columns names another column)"
    ),
    "other_logits": "{rule} (--score-columns names other columns)",
    "metrics_of_degrees": "{rule} (degrees of truth need metrics such as soft_f1_macro)",
    "single_value": "must have one value in each row, but has {number}",
    "list_as_in_row_1": "must be a list of {size} numbers as in row 1, but is {value!r}",
    "column_of_numbers": "must be numbers, but has {value!r}",
    "has_name": "must have a name",
    "different_values_at_most": "must have at most {maximum} different values, but has more",
    "label_of": "must be a class, one of {classes!l} (--label-column and --score-columns name other columns)",
    "decision_of": "must be one of {decisions!l}",
    "labels_alone": "cannot be labels and predictions, too",
    # Their classes and scores
    "classes_at_most": "must have at most {maximum} classes, but has {number}",
    "size_of_lists": "has lists of {size} scores, but there are {number} classes",
    "column_for_each_score": "has {columns} columns of scores, but there are {number} classes: {classes!l}",
    "number_of_scores": "must have {size} scores, but has {number}",
    "number_of_classes_of_file": (
        "must have scores of {minimum} to {maximum} classes, but has {number}: {classes!l}"
    ),
    "labels_of_one_score": "one column of scores needs labels: --label-column COLUMN",
    "score_of_two_classes": "has one score for each row, but there are {number} classes",
    "called_classes": "--classes must be what the file calls {classes!l}, in this order",
    "only_class": "has only the class {name!r}: --classes names all of them",
    "scores_of_classes": "has predicted labels, but scores of each class are needed: --score-columns names them",
    "classes_for_logits": "has soft labels, but logits need one class for each row",
    "expected_classes": "has scores for {number} classes, but {expected} are expected",
    "finite_if_calibrated": "the calibrated logits are not finite",
    "cost_for_each_class": "must have a cost for each of the {classes} classes, but has {number}: --cost-columns",
    "columns_by_true_class": (
        "--cost-columns must be by true class, C x C columns: what a decision costs depends on the true class, which a "
        "rule does not know. Or give --costs-if-wrong, if columns have what deciding for each class costs if it is "
        "wrong"
    ),
    "no_class_named_so": "a class must not be named {name!r}, which stands for a referral",
    "no_written_column": "has a column {column!r}, which decisions are written to: rename it",
    "no_other_labels": (
        "has a column {column!r}, which is read as labels beside decisions, but --labels has others: rename it"
    ),
    "column_for_labels": (
        "must have a column of labels, which may be empty: --label-column COLUMN names it"
    ),
    "chance_of_label": "must be from {minimum} (--least-chance) to 1 where there is a label",
    "risk_or_empty": "must be from 0 to 1, or empty",
    "cost_or_empty": "must be finite and, without costs of rows, at least 0, or empty",
    "unchanged_log": (
        "has changed since row {number} was read. Each row is read once: append a row when its label has had time to "
        "come, and give a new log a new name"
    ),
    # Several files, and several models in one
    "drop_of_one_file": "--missing drop is for one file: rows of several files must be the same",
    "models_of_one_file": "--models names models of one file, but there are several",
    "words_or_values": (
        "--models must be words in names of columns, one for each model, or values of one column, but are {models!l}; "
        "it has {columns!l}"
    ),
    "labels_of_models": "the labels of {model} are not those of the other models",
    "names_row": "must name the row, but is missing",
    "different_ids": "each id must name one row, but {id!r} appears again{hint}",
    "rows_of_file": "lacks {rows} of {other}, such as {id!r}{where}{hint}",
    "one_row": "1 row",
    "several_rows": "{number} rows",
    "in_row": " in row {row}",
    "in_row_of_column": " in row {row} of column {column}",
    "or_drop": " (--missing drop leaves such rows out)",
    "other_names": ": name other columns with --id-column",
    "as_many_rows": (
        "has {rows} rows{note}, but {other} has {others} (--id-column COLUMN, if both have ids, names a missing row)"
    ),
    "below_header": " below the header {names!l}",
    "without_names": " without names",
    "ids_of_both": (
        "has the ids {ids!l}, and {other} {others!l}: name a column of both by --id-column, or leave out those of the "
        "labels"
    ),
    "column_of_labels": (
        "has no column of labels that is known by its name; it has {columns!l}: --label-column COLUMN names it"
    ),
    "one_column_of_labels": "has several columns that may be the labels, {columns!l}: choose by {ways}",
    "classes_as_first": "has one class for each row, but {first} has soft labels",
    "soft_labels_as_first": "has soft labels for each row, but {first} has one class",
    "group_as_first": "must be {expected!r} as in {first}, but is {value!r}: {how}",
    "label_as_first": "the label must be {expected!r} as in {first}, but is {value!r}: {how}",
    "matched_in_order": "rows are matched in order (--id-column COLUMN matches them by ids)",
    "matched_by_ids": "rows are matched by their ids",
    "probabilities_to_draw": "must have probabilities, but has decisions",
    "classes_to_draw": "must have one class for each row, but has soft labels",
    "probabilities_at_most": (
        "must have at most {maximum} probabilities, of all models together: draw fewer rows"
    ),
    # Confusion matrices
    "table_of_classes": "must be a table with the class names in the header, and first in each row",
    "header_of_classes": (
        "must begin with a header of class names, and each row with its class, but the header is missing: the first "
        "line is {line!l}"
    ),
    "classes_of_matrix": "must have 2 to {maximum} classes, but has {number}",
    "square": "must have the same classes in rows and columns, but has {rows!l} and {columns!l}",
    "sums_of_counts": "has {totals!l}, which are not the sums of the counts",
    "counted_samples": "must count from 1 to {maximum} samples, but counts {number}",
    "count": "must be a whole number of at least 0, but is {value!r} for {label!r}",
    "corner": (
        r"has the corner {corner!r}: write true\predicted if rows are true classes, else predicted\true"
    ),
    "same_classes_as_concern": "must have the classes of the concern, {classes!l}, but has {names!l}",
    "no_probabilities_of_counts": "holds decisions alone, but {metrics!l} must have probabilities",
    # Trials of detectors
    "one_column_of_scores": "one column has the scores, not {number}: --score-column",
    "label_of_trial": (
        "must be a word of targets or of non-targets, such as 1, target, 0, nontarget (--target-label names the label "
        "of targets, and all others are non-targets)"
    ),
    "both_kinds_of_trials": "must contain target and non-target trials, but contains no {missing} trial",
    "names_of_trials": "must name its trials, by a column trial or --id-column, as the other file does",
    "label_of_row": "row {number} must have the label that it has in {first}",
    "label_of_named": "trial {name!r} must have the label that it has in {first}",
    # Files that are written
    "ends_as_text": "must end in .csv, .parquet, .tsv or .txt",
    "ends_as_arrays": "must end in .csv, .parquet, .tsv or .txt, or as arrays .npz or .pt",
    "text_to_read_again": "text could not be read again ({error}): write .parquet instead",
    "columns_to_read_again": (
        "in text, the columns {names!l} would be read as {read!l}, with the decimal mark {decimal!r}: write .parquet "
        "instead"
    ),
    "value_to_read_again": "in text, {cell!r} would be read as {read!r}: write .parquet instead",
    "no_reserved_name": "a column must not be called {name!r}, as scores or labels are",
    "no_zero_character": "must have no zero character",
    "no_white_space": "must have no white space and no quotes in text",
    "no_list_of_trials": "holds the labels itself: a list of trials is only for text",
    "list_of_trials": "holds no labels: give another file for the list of trials, --out-trials FILE",
    "written_format": "names a format that is not written: csv, parquet and npz, or text for both files",
    "needs_columns": "needs the columns {needed}, but the trials have {columns}",
    # States, limits and requirements as text
    "kind_of_state": "its kind is {kind!r}",
    "lists_of_numbers": "must be lists of numbers",
    "place_in_log": "the place in {log!r} must be a number of rows and a hash",
    "alarm_of_state": "must be an alarm of this state",
    "kept_requirement": "requirement {requirement!r}: {error}",
    "limit_as_text": "limit {text!r}: {error}",
    # Integrations
    "of_selector": "must be an argument of the CheckpointSelector, not of SelectCheckpoint",
    "selector_or_folder": "must be a CheckpointSelector or a folder",
    "rule_of_folder": "must be a SelectionRule if the first argument is a folder",
    "unknown_setting": "has no setting {name!r}; it has {known}",
    "of_metrics": "must be of the metrics {metrics}",
    "state_and_trainer": "must be a function, such as model.state_dict, and trainer the Engine that trains",
    "no_validation": "must be at most max_epochs ({maximum})",
    "classes_last": "must have shape (N, ..., C), with the classes in the last dimension, and labels (N, ...)",
    "one_kind_of_labels": "must name one kind of labels",
    "named_loss": "must not end in 'loss'",
    "followed_metric": "must name a metric for which lower is better, because MPCSLR follows it",
    "trial_name": "must return the name of a folder for each trial, for SelectCheckpoint",
    "classes_of_concern": "must be classes of the concern, {classes}",
    "no_label": "must not be a label",
    "not_a_label": "must be {kind} that is not one of the labels",
    "settings_of_name": "need a metric given by name, not a Metric",
    "scorer_input": "must be of decisions or probabilities",
    "no_direction": "must have a direction (higher_is_better)",
    "no_weights": "must be None, because {metric} does not support weights",
    "takes_probabilities": "takes probabilities (N, {classes})",
    "several_classes": "must have more than one class",
    "every_class": "must contain every class of the concern, but lacks {absent}",
    "no_answers": "must have no coarse answers, which are named by text, if labels are numbers",
    # Files and paths
    "import_path": "must read package.module:attribute",
    "import_fails": "must read package.module:attribute",
    "standard_library": "must not name a part of Python's standard library",
    "not_sealed": "has no SHA-256 at its end",
    "changed": "its SHA-256 does not fit",
    "regular_file": "must be a regular file, but is {kind}",
    "size_at_most": "must have at most {maximum} bytes",
    "unpacked_at_most": "must unpack to at most {maximum} bytes, but its {packed} bytes unpack to {unpacked} or more",
    "not_packed": "must not be packed, but {packed} bytes expand to {unpacked}",
    "members_at_most": "must have at most {maximum} members",
    "known_compression": "must be stored or deflated, but has another compression",
    "whole_bytes": "must be a whole number of bytes",
    "dense_on_cpu": "must be dense and on the CPU, but one is {layout} on {device}",
    "contiguous": "must store all of their values, but one of shape {shape} does not (contiguous)",
    "empty_path": "must be a path, but is empty",
    "local_folder": "must be in a local or mounted folder",
    "known_user": "must not begin with the ~name of an unknown user",
    "exists": "exists: choose another folder or pass --overwrite",
    "exists_already": "exists: choose another file or pass overwrite=True",
    "in_use": "is being written by another process: wait for it, or choose another folder",
    "other_selector": (
        "another selector has written epochs to {folder} since this one was created: give each run its own folder, or "
        "pass resume=True to continue from those epochs."
    ),
    "not_of_source": "is not a file of {source}",
    "not_as_written": "is not a file of {source} as it was written: {cause}",
    "unreadable_file": "is not a file of {source}, and cannot be read",
    "damaged": "{subject} is damaged: {reason}",
    "priors_of_command": (
        "must be what `mpcs calibrate priors --json` prints for {classes}, but is not ({cause})"
    ),
    "unusable_priors": "its priors must not be used: {problem}",
    "priors_of_classes": "its classes are {classes}",
    # YAML
    "max_characters": "more than {maximum} characters",
    "no_anchor": "anchors and aliases such as &{anchor} are not supported",
    "no_tag": "tags such as {tag} are not supported",
    "max_depth": "nested more than {maximum} deep",
    "long_number": "a number of {length} characters",
    "no_merge_key": "merge keys (<<) are not supported",
    "key_is_text": "a key must be text, not a list or a mapping",
    "key_once": "{key} appears twice",
    "allowed_character": "the character U+{character} is not allowed",
    "utf_8_byte": "not UTF-8 text: byte {byte} at {at}",
    # Configs of training
    "caused_by": "{cause}",
    "problems": "{lines}",
    "cannot_read": "cannot read {file}: {reason}",
    "names_code": "names code ({names}): if you trust it, pass --trust-code to run it",
    "keys": "must be a mapping with the keys {keys}",
    "dotted_key": "must read dotted.key=value",
    "no_keys": "has a value, not keys",
    "one_key": "must have one of the keys {key} and {other}",
    "known_name": "must be one of {names}, but is {name}",
    "known_name_or_path": "must be one of {names}, or have a path, but is {name}",
    "no_key": "must have another name, because {name} is a key here",
    "maker": "must name a function or class of {takes}, but {maker}: {cause}",
    "returns": "must return {needed}, but returns {returned}",
    "returns_logits": "must return logits, floating point {shape}, but returns {returned}",
    "raised": "raised {problem}{line}",
    "name_of_column": "must not be 'epoch' nor begin with {prefix}, but is {name}",
    "only_with_path": "must come with a path; {name} has its own",
    "unknown_settings": "unknown; the settings of {name} are {names}",
    "after_pass": "must be after if unit is pass",
    "classes_of_data": "must be those of the data, {names}",
    "not_of_test": (
        "{metric} is measured on test data, so a choice by it would look better there than on new data. Hold out "
        "validation samples (data.validation_fraction), measure epochs on them (epochs.samples: validation), and "
        "choose by {measured}"
    ),
    "suitable_metric": "must be one of the suitable metrics of the run, {names}, but is {name}",
    "some_metrics": "must have at least one metric, with different names",
    "validation_split": "{data} has no validation split: set data.validation_fraction, such as 0.2",
    "does_not_fit": "does not fit {data}: {cause}",
    "no_cuda": "PyTorch finds no CUDA device",
    # Data sets
    "split": "must be a Split, but is {seen}",
    "labels_of_split": "must be int64 (N,) with N > 0, but is {seen}",
    "inputs_of_split": "must be (N, ...) with N = {rows}, as labels, but is {seen}",
    "clusters_of_split": "must be int64 (N,) with N = {rows}, as labels, but is {seen}",
    "classes_of_split": "must be from 0 to {last}, but are from {low} to {high}",
    "has_validation": "must not be set: this data set has a validation split of its own",
    "enough_clusters": "needs at least {minimum} clusters, but there are {number}",
    "cannot_split": "cannot split {number} {samples}: {cause}",
    "mnist": "MNIST is missing or broken in {folder} (mpcs data get mnist downloads it)",
    "add_arrays": "cannot be read as arrays: {cause} (mpcs data get add downloads them)",
    "labels_of_training": "labels {labels} do not occur in the training file",
    "one_length": "training and test series must have one length",
    "ucr_file": "must hold {stem}.tsv or .ts, but has none of them (mpcs data get ucr/{name} downloads it)",
    "finite_series": "must hold finite numbers (N, steps), but has {shape} or a missing value",
    "data_set": "data sets to get are mnist, add and ucr/NAME (a name in the UCR archive), but got {name}",
    "published_values": "does not have the published values: move it away to download them",
    "cannot_download": "cannot be downloaded from {address}: {cause}",
    # Runs and their folders
    "has_run": "already has a run: choose another folder or pass --overwrite",
    "has_evaluation": "already holds an evaluation: choose another folder or pass --overwrite",
    "stopped_run": "has a run that stopped {stopped}; more epochs would not change that",
    "no_saved_state": "has a finished run without {file}, which is needed to resume it: train it anew",
    "stopped": "stopped after epoch {epoch}, step {step}; `mpcs train --resume {folder}` resumes it",
    "damaged_state": "the saved state is damaged: {cause}",
    "saved_state": "is not the saved state of a run: {cause}",
    "same_config": (
        "the config differs from that of the saved run in {keys}; only {key} may change; --overwrite starts anew"
    ),
    "same_count": (
        "{key} cannot change when a run is resumed, because {follows} depends on it; --overwrite starts anew"
    ),
    "finished_epochs": (
        "{key} must be at least {epochs}, the number of finished epochs; --overwrite starts anew"
    ),
    "saved_epochs": "must have the {epochs} epochs of the saved run, but has {number}",
    "text_file": "is not UTF-8 text: {cause}",
    "complete_line": "has no complete line",
    "columns_of_records": "must begin with epoch and name each column once, but names {columns}",
    "columns_of_line": "must have {number} columns, but has {cells}",
    "epoch_of_line": "the epoch must be a whole number, but is {cell}",
    "finished_run": "has no {file}: finish the run first, `mpcs train --resume {folder}`",
    "result_of_run": "is not the result of a run: {cause}",
    "fitting_checkpoint": "the checkpoint of epoch {epoch} does not fit: {cause}",
    "has_epoch": "has no epoch",
    "named_once": "is named twice",
    "one_kind": (
        "must be of one kind, but {name} is that of {kind}, and {other} that of {other_kind}: name only folders of "
        "one kind"
    ),
    "some_epochs": "contains no epochs",
    "folder_of_run": (
        "must be {expected}, or have such folders: each folder in it must be, unlike {other}"
    ),
    "folders_of_runs": "must be {expected}, or have such folders: it has no folders",
    "no_control_in_name": "has control characters",
    "fitting_selector": "the selector does not fit the records: {cause}",
    "lost_process": "another process of this run cannot be reached: {cause}",
    # States, manifests and checkpoints
    "some_state": "must be what to save, such as model.state_dict, but is None.",
    "no_recursion": "must not contain itself or be nested deeper than Python's recursion limit.",
    "whole_tensor": (
        "must be a whole tensor, but is a {type}: pass update a function that gathers it (get_model_state_dict with "
        "full_state_dict=True)."
    ),
    "has_values": "must have values, but is on the meta device, which has none.",
    "cannot_be_saved": "cannot be saved: {cause}",
    "loads_again": (
        "cannot be loaded again, because of {unsafe}: convert it to tensors, numbers, text, lists and dictionaries."
    ),
    "loads_by_weights_only": (
        "cannot be loaded again with weights_only=True, because of {unsafe}: convert it to tensors, numbers, text, "
        "lists and dictionaries, or create the selector with weights_only=False."
    ),
    "loadable_state": (
        "must be loadable with weights_only=True, but is a {type}: pass its method state_dict, as in "
        "update(model.state_dict, epoch=0, name_of_metric=0.1)."
    ),
    "no_files": "must be empty, but {folder} contains {file}: pass another folder.",
    "no_earlier_run": (
        "must be empty, but {folder} contains the checkpoints of an earlier run: pass another folder for another run, "
        "or resume=True if this run continues the earlier one, from its states."
    ),
    "folder_of_selector": "does not exist: {folder} is not the folder of a CheckpointSelector.",
    "manifest": (
        "is not the manifest of a CheckpointSelector, or is damaged: {cause}. Restore a copy of this file, or use "
        "another folder."
    ),
    "manifest_there": "the manifest is gone: the folder was moved or emptied",
    "rule_of_selector": "lacks the rule and settings of a CheckpointSelector: {cause}.",
    "same_rule": (
        "was written for another rule, with {name}={there}, not {here}: choose another folder."
    ),
    "metric_of_epoch": "lacks {metric} for epoch {epoch}.",
    "recorded": "contains no checkpoint, because no epoch was recorded: call update",
    "within_limits": "none of {epochs} epochs is within the limits of the rule",
    "intact_within_limits": "contains no intact checkpoint within the limits of the rule",
    "intact": "contains no intact checkpoint of epoch {epoch}",
    "metric_of_rule": "the rule needs the metric {metrics}, but got {given}{remedy}.",
    "one_step": (
        "Accelerate would step MPCSLR once for each process: call accelerator.register_for_checkpointing(scheduler) "
        "instead of prepare(scheduler), or pass step_scheduler_with_optimizer=False to Accelerator."
    ),
    "trained_once": (
        "this SelectCheckpoint has recorded the epochs of another training in {folder}: create a new one with an empty "
        "folder for each training, or continue the first."
    ),
    "state_of_watch": "must be a state of `mpcs monitor` of this rule, but is not ({cause})",
    # Options of commands
    "point": "it must be P_TARGET or P_TARGET,C_MISS,C_FA.",
    "named_numbers": "must be {form}, but is {text}",
    "rule_of_state": "is not the rule that the state was begun with: begin another state",
    "is_there": "{path}: no such {kind}",
    "file_or_name": "no such file, and no such name; {known}",
    "packaged_name": "{name}: no such name; {known} A file is written ./{name} or {name}.yaml",
    "of_kind": "{path} must be a {kind}, but is not",
    "folder_is_there": "{path}: the folder {folder} does not exist",
    "new_file": "{path} exists: choose another file{or_else}",
    "no_input": "{path} is a file to read: choose another",
    "no_other_output": "{path} is written by another option, too",
    "given_once": "is given more than once",
    "given_for_each": "must be given once for each of the {files} files of scores, but is given {given} times",
    "needs_too": "needs {other}, too",
    "is_not_nan": "must be a number, but is nan",
    "is_not_0": "must be above 0, but is 0",
    "prior": "must be between 0 and 1, but is {number}",
    "numbers_with_commas": "must be numbers with commas between, but is {text!r}",
    "column_of_groups": "must be COLUMN=A,B, but is {text!r}",
    "groups_named": "no row names a group yet: pass --groups {column}=A,B",
    "some_limit": "the rule has no limit: give one",
    "fixed_settings": "the settings of {state} are fixed",
    "some_alarm": "{state} has no alarms yet, because it does not exist",
    "of_method": "is not for --method {method}",
    "of_source": "only for --from {sources}, but got {source}",
    "of_scores": "is for scores, which a confusion matrix does not have",
    "of_one_file": "is for one file of predictions",
    "out_of_several": "name the file for several folders",
    "experiments_or_all": "name one or more experiments ({names}) or pass --all",
    "experiment_once": "{names}: name each experiment once",
    "config_or_resume": (
        "give CONFIG, which is a YAML file or a name such as digits (`mpcs train --list` lists them), or --resume RUN "
        "to resume a run"
    ),
    # Concerns
    "only_releases": "needs a spec with releases, but this one has weights or dangerous pairs",
    "dense_classes": "must be at most {maximum} for a matrix of all pairs",
    "child_once": "must name each child once",
    "one_root": "must have one parent that is no child, the root",
    "no_circle": "must lead from the root to all names, without circles",
    "class_once": "must contain each class once",
    "leaves": "must be the leaves of the tree, {leaves}",
    "tree": "must contain only mappings, lists and class names",
}
"""The rule for each code, as it continues a sentence that begins with the argument."""
MIN_CONCESSION = 2e-9
"""The lowest concession of MPCS, which keeps t below its maximum of 2^29."""
MAX_CONCESSION = 0.5
"""The number that concessions of MPCS are below."""
CONCERN_PROBLEMS: Mapping[str, str] = {
    "number_of_classes": "must be at least 2 and at most {maximum}, but got {value}",
    "list_of_classes": "must be a list of names or the number of classes, but got {value}",
    "two_classes": "must name at least 2 classes, but got {value}",
    "quoted_name": "must be a name in quotes, but got {value}",
    "short_name": "must have at most {maximum} characters, but has {length}",
    "no_control_characters": "must not contain control characters, but got {value}",
    "new_name": "must differ from the other names, but {value} appears twice",
    "list_of_pairs": "must be a list of lists [true, predicted, ...], but got {value}",
    "pair": "must be a list [true, predicted, ...], but got {value}",
    "other_class": "must differ from the true class {value}",
    "known_class": "must be one of the classes {classes}, but got {value}{suggestion}",
    "name_or_index": "must be a class name or an index from 0 to {last}, but got {value}",
    "factor": "must be a number above 0 and at most 1, but got {value}",
    "weights_or_releases": "cannot be combined with releases: give only one of them",
    "matrix": "must be a matrix (a list of rows), but got {value}",
    "row_per_class": "must have {size} rows, one per class, but got {value}",
    "row_of_numbers": "must be a list of {size} numbers, but got {value}",
    "weight": "must be a finite number >= 0, but got {value}",
    "one_diagonal": "must be {first} as in row 0, because right decisions cost the same, but got {value}",
    "some_weight": "must have a weight above 0 off the diagonal: otherwise no error has a cost",
    "dangerous_or_releases": (
        "cannot be combined with releases: every error that is not released is dangerous"
    ),
    "some_pair": "must list at least one pair: otherwise no error would be dangerous",
    "avoided_error": "must have a weight above 0: decisions would not avoid this error",
    "weight_or_pairs": "must be a weight above 0 or a list of pairs, but got {value}",
    "pairs_without_weights": "must be a list of pairs unless there are weights, but got {value}",
    "not_above_all": (
        "must be at most the highest weight {highest}: otherwise no error would be dangerous, but got {value}"
    ),
    "cost": "must be a finite cost >= 0, but got {value}",
    "cost_or_costs": "must be a finite cost >= 0, or one for each class, but got {value}",
    "cost_per_class": "must be one cost, or {size} costs, one per class, but got {value}",
    "one_cost": "must be one cost for all classes to be explored",
    "mapping_of_answers": "must be a mapping such as {{'red or yellow': 0.3}}, but got {value}",
    "answers_with_refer": "must come with the cost of a referral (refer), the coarsest answer",
    "ambiguous_name": "must not be given if a class name contains ' or ', as in {value}",
    "separated_classes": "must name different classes separated by ' or ', but got {value}",
    "classes_of_answer": "must name classes, but {value} names {unknown}{suggestion}",
    "not_all_classes": "must leave out a class: {value} is a referral",
    "other_answer": "must differ, but {value} has the same classes as another",
    "cost_of_answer": "must have a finite cost >= 0, but {value} has {cost}",
    "mapping_of_groups": "must be a mapping such as {{referable: [moderate, severe]}}, but got {value}",
    "group_name": "must have names of up to {maximum} characters without ], but got {value}",
    "new_group": "must differ from classes, coarse answers, {reserved}, but {value} is one",
    "members": "must be a list of classes, but got {value}",
    "some_class_left": "must leave out a class",
    "concession": (
        f"must be a number from {MIN_CONCESSION:g} to below {MAX_CONCESSION:g}, but got {{value}}"
    ),
    "no_ranges": "has ranges of costs: use load_concern_range or mpcs score",
    "ascending": "must go from the lower to the higher cost, but goes from {low:g} to {high:g}",
    "mapping": "must be a mapping with the keys {keys}",
    "has_classes": "must have the key classes",
    "known_key": "must be one of the keys {keys}",
    "spec_per_person": "low and high must have a spec for each person, but have {low} and {high}",
    "agree": "specs must agree on {part}, but have {first} and {value}",
    "same_pairs": "low and high must have the same released pairs, or both weights, but do not",
    "low_below_high": "low must have no cost above that of high, but does",
}
"""The problems of the description of a concern, by code; a sentence continues a line that begins with the place."""
HINTS: Mapping[str, str] = {
    "seen_within": "it is too close to the limit {limit}",
    "spec": "mpcs_torch.load_concern reads a file",
    "spec_or_tensor": "mpcs_torch.load_concern reads a file",
    "pairs": "weights do not define which errors are dangerous",
    "binary_scores": "pass decisions such as (preds > 0.5).long() of the probabilities of class 1",
    "costs_by_true_class": "functional.costs_if_wrong makes them of amounts",
    "costs_of_soft_labels": "no label says which of (N, C, C) are meant",
    "given_for_every_batch": "Evaluation takes weights with is_weighted=True, and costs with has_costs=True",
    "compared_by": "metrics= and --metrics choose them",
    "probabilities": (
        "for logits pass from_logits=True, or their softmax where there is no such setting; divide rounded ones and "
        "percentages by their sum"
    ),
    "finite_logits": "clamp probabilities, for example to 1e-12, before taking logarithms",
    "class_indices": "ignore_index, where there is such a setting, leaves out rows with one other label",
    "whatever_the_error": (
        "labels of complaints must be left out, and samples that are chosen together need clusters"
    ),
    "weights_off_diagonal": (
        "the weights of a sample are divided by their sum; costs of 0 are for expected concern, decisions and margins"
    ),
    "separated": "no finite scale is optimal",
    "not_updated": "call update first",
    "not_fitted": "call fit, or load a state_dict",
    "unknown_metric": "{suggestion}",
    "misspelt_limit": "{suggestion}",
    "suitable_metric": "{suggestion}",
    "metric_class": "it names {found}",
    "no_validation": "there would be no validation, and SelectCheckpoint would record no epoch",
    "classes_last": "preprocess_logits_for_metrics can move a dimension",
    "named_loss": "the Trainer would assume that lower is better, but {type} has higher_is_better={direction}",
    "followed_metric": "greater_is_better is {greater_is_better}",
    "trial_name": (
        "pass hp_name=lambda trial: f'run-{{trial.number}}' to hyperparameter_search (with Ray or W&B, another name "
        "for each trial)"
    ),
    "no_label": "it is class {label}",
    "scorer_input": "it is of {kind}",
    "takes_probabilities": "for decisions and thresholds, use a metric of decisions, such as expected_concern",
    "no_epoch": "update(state, epoch=0, name_of_metric=0.1)",
    "limit_type": "Limit.parse reads text",
    "requirement_type": "pass a list as *requirements",
    "below_highest_loss": "no decision can exceed the limit",
    "per_sample": "where that of the rule is per cluster, give another one (`--limit`)",
    "known_before_class": "give those of each class if it is wrong, or by true class",
    "below_limit": "with more errors, samples must be referred, so use the rate of the rest",
    "far_below_limit": "the limit is {limit}",
    "monitored": "{suggestion}",
    "never_merged": "use a RiskMonitor",
    "has_referrals": (
        "a referral is neither right nor wrong by them; coverage, selective_accuracy and dangerous_rate count it, and "
        "rates of a class, such as precision[CLASS] and error_rate[CLASS], are always measured"
    ),
    "misspelt_class": "{suggestion}",
    "known_setting": "{hint}",
    "costs_of_no_metric": "mean_cost and regret do",
    "one_column_of_clusters": "two columns are for `evaluate`, which has all rows",
    "no_further_models": (
        "merged rows have no identifiers, so models may have different orders; update all models in each part, or "
        "pass clusters"
    ),
    "limit_in_percent": "did you mean {limit} %?",
    "measured": "{hint}",
    "rates_compared_by": "add it to metrics (--metrics)",
    "numbered_classes": "pass class_names, in the order of the columns of preds",
    "column_for_each_class": "rename the columns, or pass the array alone",
    "labels_second": "preds come first, evaluate(preds, target)",
    "classes_second": "preds come first, evaluate(preds, target)",
    "preds_first": "preds come first, evaluate(preds, target)",
    "both_classes": (
        "torch.stack([1 - p, p], 1) of the probability of class 1, or evaluate_detectors for other scores"
    ),
    "order_of_severity": "put the worst class last, or combine by a function",
    "same_decisions_in_unit": "referrals have no order, so combine scores first (mpcs decide --unit)",
    "same_costs_in_unit": "combine them first",
    "no_sync_on_step": "processes may have rows of other groups",
    "dense_rows": "write all values of each row",
    "import_fails": "{problem}{remark}",
    "standard_library": "it is in {owner}",
    "unpacked_at_most": "to read it, set the environment variable {variable} to a higher limit",
    "local_folder": "mount the storage, or work in a local folder and copy",
    "known_user": "write {way} for a file of this name",
    "dense_classes": "MetaPatternConcernScore takes the spec, or its sparse_matrix()",
    "tree": "it is at {place}",
}
"""The remedy or the reason that ends the sentence of some codes."""
WARNINGS: Mapping[str, str] = {
    "E1": "test rows are also in data that was used before",
    "E2": "rows are copies of others, or share a patient or the like",
    "E3": "probabilities and shares of right decisions differ",
    "E4": "classes that are dangerous to miss are rare",
    "E5": "the rows also picked the epoch",
    "E6": "scores seem to be those of another class",
}
"""The kinds of warnings that an evaluation may mislead, by code; a page of the documentation explains each."""
