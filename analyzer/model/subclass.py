"""The words a pattern may give to a kernel: one word for one sort of work, whatever library does it."""

SETUP = "comm_setup"

SUBCLASSES: dict[str, str] = {
    # communication
    "all_reduce": "every rank ends with the reduction of all ranks' tensors",
    "all_gather": "every rank ends with all ranks' tensors",
    "reduce_scatter": "every rank ends with its slice of the reduction",
    "all_to_all": "every rank sends a slice to every rank",
    "dispatch": "tokens go to the ranks of their experts",
    "combine": "the experts' outputs come back to the tokens' ranks",
    "broadcast": "one rank's tensor goes to all",
    "reduce_to_root": "one rank ends with the reduction",
    "gather_to_root": "one rank ends with all ranks' tensors",
    "scatter_from_root": "one rank's slices go to all",
    "send_recv": "point to point, or a collective built of it",
    "barrier": "ranks wait for each other and move nothing",
    "collective": "a collective, or a step of one, whose kind the name does not tell",
    "comm_setup": "sizes, layouts and flags that ranks exchange before the data",
    # movement
    "kv_write": "new keys and values go into the KV cache",
    "kv_gather": "cached keys and values are read out into a contiguous tensor",
    "kv_offload": "KV cache blocks move between device memory and another tier",
    "copy_htod": "host memory to device memory",
    "copy_dtoh": "device memory to host memory",
    "copy_dtod": "within one device's memory",
    "copy_ptop": "between two devices' memories",
    "copy": "a copy whose direction the name does not tell",
    "layout_copy": "the same values in another place, order or type on the device: cat, gather, permute, cast",
    "fill": "a constant is written",
    # compute, attention and sequence mixing
    "attention": "attention, its split-KV reduction and its merges",
    "mla": "multi-head latent attention",
    "sparse_attention": "attention over selected keys, and the scoring that selects them",
    "linear_attention": "state-space, delta-rule and linear attention layers, with their short convolutions",
    # compute, products
    "gemm": "dense matrix product, with its split-K reduction and epilogue",
    "moe_gemm": "the experts' grouped matrix products",
    "lora": "low-rank adapter products",
    "convolution": "convolution, with its transforms",
    # compute, the rest of a layer
    "moe_route": "expert choice, token sorting, weighting and summing around the experts",
    "norm": "layer, RMS, group and batch norms, with what is fused into them",
    "rope": "rotary embedding, with the QK norm and KV write fused into it",
    "quantize": "scales and casts to and from quantized types",
    "activation": "SiLU, GELU, ReLU and their gated forms",
    "softmax": "softmax outside an attention kernel",
    "embedding": "table look-up and its gradient",
    "sampling": "from logits to tokens: penalties, top-k, top-p, argmax, verification of drafts",
    "sort": "sorting, scanning, selecting and counting",
    "indexing": "positions, page tables and index tensors of a step",
    "elementwise": "pointwise arithmetic",
    "reduce": "sums, means and other reductions within a device",
    "pooling": "pooling and resampling",
    "random": "random numbers, dropout",
    "loss": "loss functions and their gradients",
    "optimizer": "parameter updates",
    "fft": "Fourier transforms",
    # compute, what a name hides
    "generated": "a compiler's kernel whose name does not tell what it computes",
    "program": "a whole compiled program run as one device entry",
    "other": "no pattern knows the name; counted as compute, and its share is reported",
    "framework": "host-side bookkeeping of a trace without a device: views, allocation, dispatch, autograd",
    # sync
    "event_wait": "a device entry that only waits for an event of another stream or device",
    "collective_wait": "the caller of a collective is blocked until it ends",
    "marker": "a device entry that marks a point and does no work",
}
