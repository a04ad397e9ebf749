"""Ascend operators: CANN's type names, bare (`MatMulV2`), numbered (`Cast12`), or at the end of a longer name.

aclnn writes `aclnnAddmm_MatMulCommon_MatMulV2`, MindSpore `Default/network-…/Conv2D-op8`.
"""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Pattern


def _op(types: str) -> str:
    """Names that end with one of the operator types."""
    before = r"(?:aclnn\w+_|trans_|atomic_|[A-Z][A-Za-z0-9]*\d_|FusionOp_\w+_|(?:Default|Gradients)/(?:\S*[/_])?)?"
    return rf"^{before}(?:{types})(?:-op|-)?[\d_]*(?:/[A-Z]+)?$"


PATTERNS = (
    Pattern(
        _op(
            r"(?:FlashAttentionScore|PromptFlashAttention|FusedInferAttentionScore|IncreFlashAttention|AttentionUpdate"
            r"|PagedAttention|RingAttentionUpdate|UnpadFlashAttention)(?:Grad|V\d)?"
        ),
        Kind.COMPUTE,
        "attention",
        (
            "aclnnFlashAttentionScore_FlashAttentionScore_FlashAttentionScore",
            "FlashAttentionScoreGrad",
            "FusedInferAttentionScore",
            "PromptFlashAttention",
            "PagedAttention",
        ),
    ),
    Pattern(
        _op(r"(?:MlaProlog|MLAPO|MlaPreprocess|MultiLatentAttention)(?:V\d)?"),
        Kind.COMPUTE,
        "mla",
        ("MlaPrologV2", "MlaPrologV3"),
    ),
    Pattern(
        _op(
            r"(?:Batch|Transpose(?:Batch)?|Quant(?:Batch)?|WeightQuantBatch)?Mat[mM]ul(?:V\d)?|Gemm(?:V\d)?|MatMul_\w+"
        ),
        Kind.COMPUTE,
        "gemm",
        (
            "aclnnAddmm_MatMulCommon_MatMulV2",
            "MatMulV3",
            "BatchMatMul101",
            "QuantBatchMatmulV3",
            "Default/network-WithLossCell/_backbone-AlexNet/FusionOp_MatMul_Relu-op527",
        ),
    ),
    Pattern(
        _op(r"(?:Depthwise)?Conv[123]D(?:Backprop(?:Filter|Input))?(?:V\d|D)?(?:_ReluGradV2)?"),
        Kind.COMPUTE,
        "convolution",
        (
            "Conv2D1",
            "Conv2DBackpropFilter10",
            (
                "Gradients/Default/network-WithLossCell/_backbone-AlexNet/gradReLU-expand/"
                "FusionOp_Conv2DBackpropInputD_ReluGradV2-op528"
            ),
        ),
    ),
    Pattern(
        _op(r"(?:Inplace)?(?:Add)?(?:Rms|Layer|Group|Batch|Instance|Deep)Norm\w*?|BN(?:Training|Infer)\w*?"),
        Kind.COMPUTE,
        "norm",
        ("RmsNorm", "RmsNormGrad", "LayerNormV3", "AddRmsNorm", "LayerNorm90"),
    ),
    Pattern(
        _op(r"(?:RotaryPositionEmbedding|RotaryMul|InterleaveRope|ApplyRotaryPosEmb|Rope|Mrope)(?:Grad|V\d)*"),
        Kind.COMPUTE,
        "rope",
        ("RotaryPositionEmbedding", "RotaryPositionEmbeddingGrad", "InterleaveRope", "RotaryMul"),
    ),
    Pattern(
        _op(r"(?:Relu|Gelu|FastGelu|Silu|Swish|GeGlu|LeakyRelu|Sigmoid|BiasAdd_Relu)(?:V\d)?(?:Grad)?(?:V\d)?"),
        Kind.COMPUTE,
        "activation",
        (
            "aclnnInplaceRelu_Relu_Relu",
            "FastGelu",
            "Default/network-WithLossCell/_backbone-AlexNet/FusionOp_BiasAdd_ReluV2-op532",
        ),
    ),
    Pattern(
        _op(r"(?:Ascend)?(?:AntiQuant|Quant(?:ize)?|Dequant(?:ize)?)(?:V\d)?|DequantSwigluQuant|GroupQuant"),
        Kind.COMPUTE,
        "quantize",
        ("AscendQuantV2", "Quantize"),
    ),
    Pattern(
        _op(r"(?:ScaledMasked|Log)?Softmax(?:V\d)?(?:Grad)?"),
        Kind.COMPUTE,
        "softmax",
        ("ScaledMaskedSoftmax108", "aclnnLogSoftmax_LogSoftmaxAiCore_LogSoftmaxV2", "SoftmaxV2"),
    ),
    Pattern(
        _op(r"Scatter(?:PaKvCache|PaCache|NdUpdate|Update)(?:V\d)?|ReshapeAndCache\w*?"),
        Kind.MOVEMENT,
        "kv_write",
        ("ScatterPaKvCache", "ScatterNdUpdate", "ReshapeAndCacheNdKernel"),
    ),
    Pattern(
        _op(r"GatherPaKvCache|PagedCacheLoad\w*?"),
        Kind.MOVEMENT,
        "kv_gather",
        ("GatherPaKvCache",),
    ),
    Pattern(
        _op(r"MemSet|ZerosLike|OnesLike|Fill|Zeros|Ones|memset"),
        Kind.MOVEMENT,
        "fill",
        (
            "Default/MemSet-op537",
            "aclnnMm_MatMulCommon_MemSet",
            "Conv2DBackpropFilter9_MemSet",
            "atomic_memset-1_134_2208226_2_0",
        ),
    ),
    Pattern(
        _op(
            r"TransData|Transpose(?:D)?|TensorMove|Cast|Concat(?:V\d)?(?:D)?|Slice(?:V\d)?|StridedSlice(?:V\d|D)?"
            r"|Split\w*?"
            r"|Gather(?:V\d|Elements|Nd)?(?:V\d|D)?|BroadcastTo|AsStrided|ViewCopy|Index(?:PutV\d)?|Tile|Pad(?:V\d|D)?"
            r"|ScatterElements\w*?|Pack|Unpack|Identity|Contiguous|Reshape|FormatCast|Expand|Repeat\w*?|Tril|Triu"
            r"|OneHot(?:D)?"
        ),
        Kind.MOVEMENT,
        "layout_copy",
        (
            "trans_TransData_12",
            "aclnnInplaceCopy_TensorMoveAiCore_TensorMove",
            "Default/network-WithLossCell/_backbone-AlexNet/fc3-Dense/Cast-op259",
            "aclnnCat_ConcatD_ConcatD",
            "StridedSliceD",
            "GatherV2",
        ),
    ),
    Pattern(
        _op(
            r"TopK(?:V\d)?|Sort|ArgMax(?:WithValue|V\d)?|NonZero|Unique\w*?|Cumsum|Bincount|ArgSort|Multinomial"
            r"|TopKTopP\w*?"
        ),
        Kind.COMPUTE,
        "sort",
        ("aclnnTopk_TopkV2_TopKV2", "Sort", "ArgMaxWithValue112", "NonZero57"),
    ),
    Pattern(
        _op(r"EmbeddingDenseGrad(?:V\d)?|Embedding|EmbeddingBag"),
        Kind.COMPUTE,
        "embedding",
        ("aclnnEmbeddingDenseBackward_EmbeddingDenseGradV2_EmbeddingDenseGradV2",),
    ),
    Pattern(
        _op(
            r"(?:Reduce|BiasAdd)(?:Sum|Mean|Max|Min|Prod|All|Any|Grad|StdV\d\w*?)(?:D|Op)?|SquareSum\w*?"
            r"|LpNorm(?:Reduce|Update)?(?:V\d)?"
        ),
        Kind.COMPUTE,
        "reduce",
        ("ReduceSum7", "aclnnReduceSum_ReduceSumOpAiCore_ReduceSum", "ReduceSumD", "LpNormReduceV2158"),
    ),
    Pattern(
        _op(r"(?:Max|Avg|AdaptiveAvg|AdaptiveMax)Pool\w*?|Resize\w*?|Upsample\w*?"),
        Kind.COMPUTE,
        "pooling",
        (
            "aclnnMaxPool2dWithMask_MaxPoolWithArgmaxV1AiCore_MaxPoolWithArgmaxV1",
            "aclnnAdaptiveAvgPool2d_AdaptiveAvgPool3dAiCore_AdaptiveAvgPool3d",
        ),
    ),
    Pattern(
        _op(
            r"DropOutDoMask\w*?|(?:Stateless)?Drop[oO]ut(?:GenMask)?\w*?|DSA\w+?|Stateless\w+?|(?:Random|Truncated)\w+?"
        ),
        Kind.COMPUTE,
        "random",
        ("aclnnDropoutGenMaskV2_DSAGenBitMask_DSAGenBitMask", "DropOutDoMask100", "DSAStatelessGenBitMask"),
    ),
    Pattern(
        _op(r"NLLLoss(?:Grad)?|(?:Sparse)?(?:Softmax|Binary)CrossEntropy\w*?"),
        Kind.COMPUTE,
        "loss",
        ("aclnnNLLLoss_NLLLossAiCore_NLLLoss", "aclnnNLLLossBackward_NLLLossGradAiCore_NLLLossGrad"),
    ),
    Pattern(
        _op(r"Apply(?:Adam|Momentum|Rms)\w*?|FusedMulApplyMomentum\w*?|AssignAdd"),
        Kind.COMPUTE,
        "optimizer",
        (
            "ApplyAdamW175",
            "aclnnApplyAdamWV2_ApplyAdamWV2_ApplyAdamWV2",
            "Default/optimizer-Momentum/FusedMulApplyMomentum-op292",
        ),
    ),
    Pattern(
        _op(
            r"(?:Foreach)?(?:Add|Sub|Mul|RealDiv|Div|Axpy|Pow|Sqrt|Rsqrt|Exp|Log|Neg|Abs|Square|Reciprocal"
            r"|Maximum|Minimum"
            r"|Sin|Cos|Tanh|Erf|Equal|NotEqual|Less|LessEqual|Greater|GreaterEqual|Logical(?:And|Or|Not)"
            r"|Bitwise\w+?|Select"
            r"|Range|Clip\w*?|MaskedFill|Where|Floor\w*?|Sign|Lerp|Addcmul|Addcdiv|BiasAdd|Muls|Adds|Pows|IsFinite)"
            r"(?:V\d|s|List|Scalar|List(?:V\d))?(?:V\d|D)?"
        ),
        Kind.COMPUTE,
        "elementwise",
        (
            "aclnnForeachAddListV2_ForeachAddListV2_ForeachAddList",
            "aclnnMuls_MulAiCore_Mul",
            "RealDiv132",
            "Default/network-WithLossCell/_backbone-AlexNet/data_trans-DataNormTranspose/Sub-op5",
            "LogicalNot120",
        ),
    ),
)
