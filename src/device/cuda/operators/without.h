/* without.h: operators of numbers that have no kernel for a GPU. Those that a target runs itself,
 * or whose sub-graph it runs: */
"all_reduce_wait", "constant", "parameter", "placeholder", "segmented",
    /* Those that run on the CPU so far: */
    "conv_integer", "dynamic_quantize_linear", "einsum", "grid_sample", "grid_sample_backward_grid",
    "grid_sample_backward_input", "history_row_grad", "matmul_integer", "pairwise_coupling",
    "qlinear_conv", "qlinear_matmul", "random_shuffle", "roi_align", "roi_align_backward",
    "sampled_matmul",
