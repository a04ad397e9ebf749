"""Copy and fill entries of every vendor's runtime, and the runtimes' own copy kernels."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        r"^(?:Memcpy HtoD|CopyHostToDevice|MEMORY_COPY_HOST_TO_DEVICE)|zeCommandListAppendMemoryCopy\(M2D\)",
        Kind.MOVEMENT,
        "copy_htod",
        (
            "Memcpy HtoD (Pageable -> Device)",
            "Memcpy HtoD (Pinned -> Device)",
            "Memcpy HtoD (Host -> Device)",
            "Memcpy HtoD",
            "CopyHostToDevice",
            "MEMORY_COPY_HOST_TO_DEVICE",
        ),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Memcpy DtoH|CopyDeviceToHost|MEMORY_COPY_DEVICE_TO_HOST)|zeCommandListAppendMemoryCopy\(D2M\)",
        Kind.MOVEMENT,
        "copy_dtoh",
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (Device -> Host)"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Memcpy [DA]to[DA]|CopyDeviceToDevice|MEMORY_COPY_DEVICE_TO_DEVICE)"
        r"|zeCommandListAppendMemoryCopy\(D2D\)|__amd_rocclr_copyBuffer",
        Kind.MOVEMENT,
        "copy_dtod",
        ("Memcpy DtoD (Device -> Device)", "__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer.kd"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Memcpy PtoP|CopyPeerToPeer)",
        Kind.MOVEMENT,
        "copy_ptop",
        ("Memcpy PtoP (Device -> Device)",),
        Breadth.NAMED,
    ),
    Pattern(
        r"^(?:Memcpy (?:HtoH|Unknown|HtoA|AtoH)|MEMCPY_ASYNC|MEMORY_COPY_|dma_request$|zeCommandListAppendMemoryCopy)",
        Kind.MOVEMENT,
        "copy",
        ("MEMCPY_ASYNC", "dma_request", "Memcpy HtoH (Host -> Host)"),
    ),
    Pattern(
        r"^Memset\b|^zeCommandListAppendMemoryFill|__amd_rocclr_fillBuffer",
        Kind.MOVEMENT,
        "fill",
        ("Memset (Device)", "Memset (Unknown)", "__amd_rocclr_fillBufferAligned", "__amd_rocclr_fillBufferAligned.kd"),
        Breadth.NAMED,
    ),
    Pattern(
        # Layout changes that cuDNN and MIOpen make around a convolution.
        r"batched_transpose_\d|n(?:chw|hwc)ToN(?:chw|hwc)Kernel|nhwcToFoldedNhwc|foldedNhwcToNhwc|convertTensor_kernel"
        r"|transpose_(?:NCHW2CNHW|CNHW2NCHW)|n[ch]{1,2}w_to_n[ch]{1,2}w",
        Kind.MOVEMENT,
        "layout_copy",
        (
            "batched_transpose_32x32_half",
            "void nchwToNhwcKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>",
            "void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>",
            "void foldedNhwcToNhwcKernel<__half, __half, float>",
            "void cudnn::engines_precompiled::convertTensor_kernel<float, float, float>",
            "transpose_NCHW2CNHW_V2_2D_WG_off64_half",
        ),
        Breadth.NAMED,
    ),
)
