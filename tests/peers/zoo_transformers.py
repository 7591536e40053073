"""Tiny models of the transformers library with random weights; MODELS as in zoo_modules."""

import importlib

import torch
import torch.nn as nn
import torch.nn.functional as F
import transformers

V, B, T = 96, 2, 8
TINY = dict(
    vocab_size=V,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=64,
    initializer_range=0.1,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    forced_eos_token_id=None,
    use_cache=False,
    num_key_value_heads=2,
    dropout=0.0,
    attention_dropout=0.0,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    activation_dropout=0.0,
    hidden_dropout=0.0,
    drop_path_rate=0.0,
    layerdrop=0.0,
    dropout_rate=0.0,
    classifier_dropout=0.0,
    summary_first_dropout=0.0,
    encoder_layerdrop=0.0,
    decoder_layerdrop=0.0,
)
SEQ2SEQ = dict(
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    classifier_dropout=0.0,
)
IMAGE = dict(image_size=16, patch_size=4, num_channels=3)


class Wrap(nn.Module):
    def __init__(self, net, names, extra):
        super().__init__()
        self.net, self.names, self.extra = net, names, extra

    def forward(self, *args):
        return self.net(**dict(zip(self.names, args)), **self.extra, return_dict=True).loss


class Pooled(Wrap):
    """A backbone without a head of its own: a linear classifier of the pooled output."""

    def __init__(self, net, names, extra):
        super().__init__(net, names, extra)
        self.head = nn.Linear(net.config.hidden_size, 3)

    def forward(self, pixel_values, labels):
        pooled = self.net(pixel_values, **self.extra, return_dict=True).pooler_output
        return F.cross_entropy(self.head(pooled), labels)


class FixedMatching(Wrap):
    """Mask2Former with query i matched to object i, at all layers of the decoder. The library's own
    loss matches by scipy and draws points of the masks."""

    def __init__(self, net, names, extra):
        super().__init__(net, names, extra)
        self.head = nn.Linear(net.config.hidden_dim, net.config.num_labels + 1)

    def forward(self, pixel_values, classes, masks):
        y = self.net(pixel_values, **self.extra, return_dict=True)
        layers = zip(y.transformer_decoder_intermediate_states, y.masks_queries_logits)
        return sum(self.loss(self.head(h.transpose(0, 1)), m, classes, masks) for h, m in layers)

    def loss(self, z, m, classes, masks):
        n = masks.shape[1]
        m = F.interpolate(m, masks.shape[2:], mode="bilinear", align_corners=False)[:, :n]
        p = m.sigmoid().flatten(2)
        t = masks.flatten(2)
        dice = 1 - (2 * (p * t).sum(-1) + 1) / (p.sum(-1) + t.sum(-1) + 1)
        return (
            2 * F.cross_entropy(z.transpose(1, 2), classes)
            + 5 * F.binary_cross_entropy_with_logits(m, masks)
            + 5 * dice.mean()
        )


class Mixture(nn.Module):
    """A block of experts alone, beside what it reads."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x, y):
        z = self.block(x)
        return F.mse_loss(x + (z[0] if isinstance(z, tuple) else z), y)


def ids(seed=3, t=T):
    return torch.randint(3, V, (B, t), generator=torch.Generator().manual_seed(seed))


def labels():
    y = ids(4)
    y[-1, -2:] = -100
    return y


def mask():
    m = torch.ones(B, T, dtype=torch.int64)
    m[-1, -3:] = 0
    return m


def real(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def classes(n, *shape):
    return torch.randint(0, n, shape, generator=torch.Generator().manual_seed(9))


MODELS = {}


def add(
    name,
    cls,
    config,
    inputs,
    attn="eager",
    extra=None,
    bare=False,
    tweak=None,
    omit="",
    experts="eager",
    wrap=Wrap,
    **kw,
):
    def make():
        c = getattr(transformers, config)(
            **({} if bare else {k: v for k, v in TINY.items() if k not in omit.split()}) | kw
        )
        if not bare:
            c._attn_implementation = attn
        if hasattr(c, "_experts_implementation"):
            c._experts_implementation = experts
        if tweak:
            tweak(c)
        net = getattr(transformers, cls)(c)
        given = {k: f() for k, f in inputs.items()}
        return wrap(net, list(given), extra or {}), given

    MODELS["hf-" + name] = make


LM = dict(input_ids=ids, labels=labels)
MASKED = dict(input_ids=ids, attention_mask=mask, labels=labels)
CLS = dict(input_ids=ids, attention_mask=mask, labels=lambda: classes(2, B))
PICTURE = dict(pixel_values=lambda: real(B, 3, 16, 16), labels=lambda: classes(2, B))

for name, stem, kw in [
    ("gpt2", "GPT2LMHeadModel GPT2Config", dict(n_embd=32, n_layer=2, n_head=4, n_positions=32)),
    ("llama", "LlamaForCausalLM LlamaConfig", dict(rope_theta=500.0)),
    ("mistral", "MistralForCausalLM MistralConfig", dict(sliding_window=4, head_dim=8)),
    ("qwen2", "Qwen2ForCausalLM Qwen2Config", {}),
    ("qwen3", "Qwen3ForCausalLM Qwen3Config", dict(head_dim=8)),
    (
        "qwen3-moe",
        "Qwen3MoeForCausalLM Qwen3MoeConfig",
        dict(
            head_dim=8,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            output_router_logits=False,
        ),
    ),
    (
        "qwen2-moe",
        "Qwen2MoeForCausalLM Qwen2MoeConfig",
        dict(
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
        ),
    ),
    (
        "mixtral",
        "MixtralForCausalLM MixtralConfig",
        dict(num_local_experts=4, num_experts_per_tok=2, head_dim=8),
    ),
    ("gemma", "GemmaForCausalLM GemmaConfig", dict(head_dim=8)),
    (
        "gemma2",
        "Gemma2ForCausalLM Gemma2Config",
        dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=4),
    ),
    (
        "gemma3",
        "Gemma3ForCausalLM Gemma3TextConfig",
        dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=4),
    ),
    ("phi", "PhiForCausalLM PhiConfig", dict(partial_rotary_factor=0.5)),
    ("phi3", "Phi3ForCausalLM Phi3Config", dict(original_max_position_embeddings=64)),
    ("neox", "GPTNeoXForCausalLM GPTNeoXConfig", dict(rotary_pct=0.5)),
    (
        "gptj",
        "GPTJForCausalLM GPTJConfig",
        dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=32),
    ),
    (
        "gpt-neo",
        "GPTNeoForCausalLM GPTNeoConfig",
        dict(
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            window_size=4,
            embed_dropout=0.0,
            attention_dropout=0.0,
        ),
    ),
    ("opt", "OPTForCausalLM OPTConfig", dict(ffn_dim=64, word_embed_proj_dim=32)),
    ("bloom", "BloomForCausalLM BloomConfig", dict(n_layer=2, n_head=4)),
    (
        "falcon",
        "FalconForCausalLM FalconConfig",
        dict(new_decoder_architecture=False, multi_query=True, alibi=False),
    ),
    ("stablelm", "StableLmForCausalLM StableLmConfig", {}),
    ("olmo2", "Olmo2ForCausalLM Olmo2Config", {}),
    ("cohere", "CohereForCausalLM CohereConfig", {}),
    (
        "granite",
        "GraniteForCausalLM GraniteConfig",
        dict(residual_multiplier=0.5, logits_scaling=2.0),
    ),
    (
        "starcoder2",
        "Starcoder2ForCausalLM Starcoder2Config",
        dict(residual_dropout=0.0, embedding_dropout=0.0),
    ),
    (
        "deepseek-v3",
        "DeepseekV3ForCausalLM DeepseekV3Config",
        dict(
            num_key_value_heads=4,
            n_routed_experts=4,
            n_shared_experts=1,
            num_experts_per_tok=2,
            n_group=2,
            topk_group=1,
            kv_lora_rank=8,
            q_lora_rank=12,
            qk_rope_head_dim=4,
            qk_nope_head_dim=8,
            v_head_dim=8,
            moe_intermediate_size=16,
            first_k_dense_replace=1,
        ),
    ),
    (
        "mamba",
        "MambaForCausalLM MambaConfig",
        dict(state_size=4, conv_kernel=3, time_step_rank=4, use_mambapy=False),
    ),
    (
        "mamba2",
        "Mamba2ForCausalLM Mamba2Config",
        dict(state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=4, expand=2),
    ),
    ("rwkv", "RwkvForCausalLM RwkvConfig", dict(attention_hidden_size=32, context_length=16)),
    (
        "xlnet",
        "XLNetLMHeadModel XLNetConfig",
        dict(d_model=32, n_layer=1, n_head=4, d_inner=64, omit="max_position_embeddings"),
    ),
    (
        "codegen",
        "CodeGenForCausalLM CodeGenConfig",
        dict(n_embd=32, n_layer=1, n_head=4, rotary_dim=4, n_positions=32),
    ),
    ("mpt", "MptForCausalLM MptConfig", dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=32)),
    ("biogpt", "BioGptForCausalLM BioGptConfig", {}),
    (
        "gpt-oss",
        "GptOssForCausalLM GptOssConfig",
        dict(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4),
    ),
    (
        "recurrent-gemma",
        "RecurrentGemmaForCausalLM RecurrentGemmaConfig",
        dict(lru_width=32, attention_window_size=4, conv1d_width=3, head_dim=8),
    ),
    ("bart-causal", "BartForCausalLM BartConfig", SEQ2SEQ),
]:
    cls, config = stem.split()
    add(
        name,
        cls,
        config,
        LM if name in ("gpt2", "mamba", "mamba2", "rwkv", "xlnet") else MASKED,
        **kw,
    )
for name in ("mixtral", "qwen3-moe"):  # experts by stacked products; above one by one
    stem = {"mixtral": "Mixtral", "qwen3-moe": "Qwen3Moe"}[name]
    add(
        name + "-batched",
        stem + "ForCausalLM",
        stem + "Config",
        LM,
        experts="batched_mm",
        head_dim=8,
        num_experts=4,
        num_local_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
    )
BLOCK = dict(hidden_size=12, num_experts_per_tok=2)


def add_block(name, file, cls, config, experts, **kw):
    def make():
        c = getattr(transformers, config)(**BLOCK | kw)
        c._experts_implementation = experts
        module = importlib.import_module("transformers.models." + file)
        block = getattr(module, cls)(c)
        for p in block.parameters():
            nn.init.normal_(p, std=0.4)
        for b in block.buffers():  # a bias of each expert's score
            b.copy_(torch.linspace(-0.2, 0.2, len(b)))
        return Mixture(block), dict(x=real(B, 16, 12), y=real(B, 16, 12).roll(1, 1))

    MODELS[f"hf-{name}-block" + ("" if experts == "batched_mm" else "-" + experts)] = make


for experts in ("batched_mm", "eager"):
    add_block(
        "deepseek-v3",
        "deepseek_v3.modeling_deepseek_v3",
        "DeepseekV3MoE",
        "DeepseekV3Config",
        experts,
        n_routed_experts=8,
        num_local_experts=8,
        n_shared_experts=1,
        n_group=4,
        topk_group=2,
        moe_intermediate_size=6,
    )
    add_block(
        "gpt-oss",
        "gpt_oss.modeling_gpt_oss",
        "GptOssMLP",
        "GptOssConfig",
        experts,
        num_local_experts=4,
        intermediate_size=6,
        swiglu_limit=0.9,
    )
add("llama-sdpa", "LlamaForCausalLM", "LlamaConfig", LM, attn="sdpa")
add(
    "gpt2-sdpa",
    "GPT2LMHeadModel",
    "GPT2Config",
    MASKED,
    attn="sdpa",
    n_embd=32,
    n_layer=2,
    n_head=4,
    n_positions=32,
)

for name, cls, config, kw in [
    ("bert", "BertForMaskedLM", "BertConfig", {}),
    ("roberta", "RobertaForMaskedLM", "RobertaConfig", {}),
    ("albert", "AlbertForMaskedLM", "AlbertConfig", dict(embedding_size=16)),
    ("electra", "ElectraForMaskedLM", "ElectraConfig", dict(embedding_size=16)),
    (
        "distilbert",
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    ),
    (
        "deberta-v2",
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        dict(
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
            position_buckets=4,
            max_relative_positions=16,
        ),
    ),
    ("mpnet", "MPNetForMaskedLM", "MPNetConfig", {}),
    ("squeezebert", "SqueezeBertForMaskedLM", "SqueezeBertConfig", dict(embedding_size=32)),
    ("convbert", "ConvBertForMaskedLM", "ConvBertConfig", dict(embedding_size=32)),
    (
        "modernbert",
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        dict(global_attn_every_n_layers=2, local_attention=4, reference_compile=False),
    ),
    (
        "nystromformer",
        "NystromformerForMaskedLM",
        "NystromformerConfig",
        dict(segment_means_seq_len=8, num_landmarks=8, conv_kernel_size=3),
    ),
    ("roformer", "RoFormerForMaskedLM", "RoFormerConfig", dict(embedding_size=32)),
    ("fnet", "FNetForMaskedLM", "FNetConfig", {}),
    (
        "mobilebert",
        "MobileBertForMaskedLM",
        "MobileBertConfig",
        dict(embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=1),
    ),
    ("esm", "EsmForMaskedLM", "EsmConfig", dict(position_embedding_type="rotary", mask_token_id=4)),
    ("ibert", "IBertForMaskedLM", "IBertConfig", {}),
    (
        "rembert",
        "RemBertForMaskedLM",
        "RemBertConfig",
        dict(input_embedding_size=16, output_embedding_size=16),
    ),
]:
    add(name, cls, config, LM if name == "fnet" else MASKED, **kw)
add("bert-cls", "BertForSequenceClassification", "BertConfig", CLS)
add(
    "bert-qa",
    "BertForQuestionAnswering",
    "BertConfig",
    dict(input_ids=ids, start_positions=lambda: classes(T, B), end_positions=lambda: classes(T, B)),
    attn="sdpa",
)
add(
    "bert-ner",
    "BertForTokenClassification",
    "BertConfig",
    dict(input_ids=ids, attention_mask=mask, labels=lambda: classes(2, B, T)),
)

add(
    "t5",
    "T5ForConditionalGeneration",
    "T5Config",
    MASKED,
    d_model=32,
    d_kv=8,
    d_ff=64,
    num_layers=1,
    num_decoder_layers=1,
    num_heads=4,
    feed_forward_proj="gated-gelu",
)
add("bart", "BartForConditionalGeneration", "BartConfig", MASKED, **SEQ2SEQ)
add("pegasus", "PegasusForConditionalGeneration", "PegasusConfig", MASKED, **SEQ2SEQ)
add("marian", "MarianMTModel", "MarianConfig", MASKED, **SEQ2SEQ)
add("m2m100", "M2M100ForConditionalGeneration", "M2M100Config", MASKED, **SEQ2SEQ)
add("blenderbot", "BlenderbotForConditionalGeneration", "BlenderbotConfig", MASKED, **SEQ2SEQ)
add(
    "prophetnet",
    "ProphetNetForConditionalGeneration",
    "ProphetNetConfig",
    dict(input_ids=ids, labels=lambda: ids(4)),
    omit="num_hidden_layers",
    num_encoder_layers=1,
    num_decoder_layers=1,
    num_encoder_attention_heads=4,
    num_decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    ngram=2,
)
add("led", "LEDForConditionalGeneration", "LEDConfig", MASKED, attention_window=4, **SEQ2SEQ)
add(
    "whisper",
    "WhisperForConditionalGeneration",
    "WhisperConfig",
    dict(input_features=lambda: real(B, 8, 32), labels=labels),
    num_mel_bins=8,
    max_source_positions=16,
    max_target_positions=16,
    **SEQ2SEQ,
)
add(
    "speech2text",
    "Speech2TextForConditionalGeneration",
    "Speech2TextConfig",
    dict(input_features=lambda: real(B, 24, 8), labels=labels),
    input_feat_per_channel=8,
    input_channels=1,
    num_conv_layers=2,
    conv_kernel_sizes=(3, 3),
    conv_channels=16,
    max_source_positions=32,
    max_target_positions=32,
    **SEQ2SEQ,
)
add(
    "wav2vec2",
    "Wav2Vec2ForSequenceClassification",
    "Wav2Vec2Config",
    dict(input_values=lambda: real(B, 400), labels=lambda: classes(2, B)),
    conv_dim=[16, 16],
    conv_kernel=[10, 3],
    conv_stride=[5, 2],
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=4,
    num_conv_pos_embedding_groups=2,
    feat_proj_dropout=0.0,
    final_dropout=0.0,
    apply_spec_augment=False,
    classifier_proj_size=16,
)
add(
    "hubert",
    "HubertForSequenceClassification",
    "HubertConfig",
    dict(input_values=lambda: real(B, 400), labels=lambda: classes(2, B)),
    conv_dim=[16, 16],
    conv_kernel=[10, 3],
    conv_stride=[5, 2],
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=4,
    num_conv_pos_embedding_groups=2,
    feat_proj_dropout=0.0,
    final_dropout=0.0,
    apply_spec_augment=False,
    classifier_proj_size=16,
)
for name, kind in [("", "relative"), ("-rotary", "rotary")]:
    add(
        "wav2vec2-conformer" + name,
        "Wav2Vec2ConformerForCTC",
        "Wav2Vec2ConformerConfig",
        dict(input_values=lambda: real(B, 400), labels=lambda: ids(4, 6)),
        position_embeddings_type=kind,
        conv_depthwise_kernel_size=7,
        conformer_conv_dropout=0.0,
        max_source_positions=64,
        conv_dim=[16, 16],
        conv_kernel=[10, 3],
        conv_stride=[5, 2],
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        feat_proj_dropout=0.0,
        final_dropout=0.0,
        apply_spec_augment=False,
        ctc_loss_reduction="mean",
    )
add(
    "ast",
    "ASTForAudioClassification",
    "ASTConfig",
    dict(input_values=lambda: real(B, 24, 16), labels=lambda: classes(2, B)),
    max_length=24,
    num_mel_bins=16,
    patch_size=8,
    frequency_stride=8,
    time_stride=8,
)

for name, cls, config, kw in [
    ("vit", "ViTForImageClassification", "ViTConfig", IMAGE),
    ("deit", "DeiTForImageClassification", "DeiTConfig", IMAGE),
    (
        "beit",
        "BeitForImageClassification",
        "BeitConfig",
        dict(use_relative_position_bias=True, **IMAGE),
    ),
    ("dinov2", "Dinov2ForImageClassification", "Dinov2Config", IMAGE),
    (
        "swin",
        "SwinForImageClassification",
        "SwinConfig",
        dict(
            image_size=16,
            patch_size=2,
            embed_dim=8,
            depths=[2, 1],
            num_heads=[2, 2],
            window_size=4,
            omit="num_hidden_layers num_attention_heads",
        ),
    ),
    (
        "swinv2",
        "Swinv2ForImageClassification",
        "Swinv2Config",
        dict(
            image_size=16,
            patch_size=2,
            embed_dim=8,
            depths=[2, 1],
            num_heads=[2, 2],
            window_size=4,
            omit="num_hidden_layers num_attention_heads",
        ),
    ),
    (
        "convnext-hf",
        "ConvNextForImageClassification",
        "ConvNextConfig",
        dict(hidden_sizes=[8, 12], depths=[1, 1], num_stages=2, image_size=16, patch_size=2),
    ),
    (
        "convnextv2",
        "ConvNextV2ForImageClassification",
        "ConvNextV2Config",
        dict(hidden_sizes=[8, 12], depths=[1, 1], num_stages=2, image_size=16, patch_size=2),
    ),
    (
        "resnet",
        "ResNetForImageClassification",
        "ResNetConfig",
        dict(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1]),
    ),
    (
        "mobilenet-v2-hf",
        "MobileNetV2ForImageClassification",
        "MobileNetV2Config",
        dict(depth_multiplier=0.25, image_size=16, classifier_dropout_prob=0.0),
    ),
    (
        "efficientnet-hf",
        "EfficientNetForImageClassification",
        "EfficientNetConfig",
        dict(
            image_size=32,
            width_coefficient=0.25,
            depth_coefficient=0.1,
            hidden_dim=320,
            drop_connect_rate=0.0,
        ),
    ),
    (
        "mobilevit",
        "MobileViTForImageClassification",
        "MobileViTConfig",
        dict(
            image_size=32,
            patch_size=2,
            hidden_sizes=[8, 12, 16],
            neck_hidden_sizes=[4, 4, 8, 8, 12, 16, 20],
            classifier_dropout_prob=0.0,
        ),
    ),
    (
        "poolformer",
        "PoolFormerForImageClassification",
        "PoolFormerConfig",
        dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 12, 12]),
    ),
    (
        "levit",
        "LevitForImageClassification",
        "LevitConfig",
        dict(
            image_size=32,
            hidden_sizes=[16, 16, 16],
            num_attention_heads=[2, 2, 2],
            depths=[1, 1, 1],
            key_dim=[4, 4, 4],
            drop_path_rate=0,
            mlp_ratio=[2, 2, 2],
            attention_ratio=[2, 2, 2],
        ),
    ),
    (
        "pvt-v2",
        "PvtV2ForImageClassification",
        "PvtV2Config",
        dict(
            image_size=32,
            hidden_sizes=[8, 8, 12, 12],
            depths=[1, 1, 1, 1],
            num_attention_heads=[1, 2, 2, 2],
            sr_ratios=[2, 2, 1, 1],
        ),
    ),
    (
        "focalnet",
        "FocalNetForImageClassification",
        "FocalNetConfig",
        dict(
            image_size=16,
            patch_size=4,
            embed_dim=8,
            depths=[1, 1],
            focal_levels=[1, 1],
            focal_windows=[3, 3],
        ),
    ),
    (
        "swiftformer",
        "SwiftFormerForImageClassification",
        "SwiftFormerConfig",
        dict(image_size=32, depths=[1, 1, 1, 1], embed_dims=[8, 8, 12, 12]),
    ),
    (
        "hgnet-v2",
        "HGNetV2ForImageClassification",
        "HGNetV2Config",
        dict(
            stem_channels=[3, 8, 8],
            embedding_size=8,
            hidden_sizes=[8, 8, 12, 12],
            depths=[1] * 4,
            stage_in_channels=[8, 8, 8, 12],
            stage_mid_channels=[4] * 4,
            stage_out_channels=[8, 8, 12, 12],
            stage_num_blocks=[1] * 4,
            stage_numb_of_layers=[2] * 4,
        ),
    ),
]:
    size = (
        32
        if name
        in (
            "efficientnet-hf",
            "mobilevit",
            "levit",
            "pvt-v2",
            "swiftformer",
            "poolformer",
            "cvt",
            "hgnet-v2",
            "resnet",
            "mobilenet-v2-hf",
        )
        else 16
    )
    add(
        name,
        cls,
        config,
        dict(pixel_values=lambda size=size: real(B, 3, size, size), labels=lambda: classes(2, B)),
        **kw,
    )
for name, gated in [("", False), ("-gated", True)]:
    add(
        "dinov3" + name,
        "DINOv3ViTModel",
        "DINOv3ViTConfig",
        dict(pixel_values=lambda: real(B, 3, 16, 16), labels=lambda: classes(3, B)),
        wrap=Pooled,
        num_register_tokens=2,
        use_gated_mlp=gated,
        pos_embed_rescale=None,
        **IMAGE,
    )
add(
    "segformer",
    "SegformerForSemanticSegmentation",
    "SegformerConfig",
    dict(pixel_values=lambda: real(B, 3, 32, 32), labels=lambda: classes(2, B, 32, 32)),
    hidden_sizes=[8, 8, 12, 12],
    depths=[1] * 4,
    num_attention_heads=[1, 2, 2, 2],
    sr_ratios=[2, 2, 1, 1],
    decoder_hidden_size=8,
    classifier_dropout_prob=0.0,
)
add(
    "mask2former",
    "Mask2FormerModel",
    "Mask2FormerConfig",
    dict(
        pixel_values=lambda: real(B, 3, 64, 64),
        classes=lambda: classes(4, B, 5),
        masks=lambda: classes(2, B, 3, 64, 64).float(),
    ),
    bare=True,
    tweak=lambda c: setattr(c, "_attn_implementation", "eager"),
    wrap=FixedMatching,
    extra=dict(output_hidden_states=True),
    backbone_config=transformers.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=8,
        depths=[1] * 4,
        num_heads=[2] * 4,
        window_size=4,
        drop_path_rate=0.0,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    ),
    feature_size=32,
    mask_feature_size=32,
    hidden_dim=32,
    encoder_feedforward_dim=32,
    encoder_layers=1,
    decoder_layers=4,
    num_attention_heads=2,
    dim_feedforward=32,
    num_queries=5,
    num_labels=3,
)
add(
    "vit-mae-like-vitmim",
    "ViTForMaskedImageModeling",
    "ViTConfig",
    dict(pixel_values=lambda: real(B, 3, 16, 16), bool_masked_pos=lambda: classes(2, B, 16).bool()),
    encoder_stride=4,
    **IMAGE,
)
add(
    "videomae",
    "VideoMAEForVideoClassification",
    "VideoMAEConfig",
    dict(pixel_values=lambda: real(B, 4, 3, 16, 16), labels=lambda: classes(2, B)),
    num_frames=4,
    **IMAGE,
)
add(
    "timesformer",
    "TimesformerForVideoClassification",
    "TimesformerConfig",
    dict(pixel_values=lambda: real(B, 4, 3, 16, 16), labels=lambda: classes(2, B)),
    num_frames=4,
    omit="drop_path_rate",
    **IMAGE,
)
add(
    "patchtst",
    "PatchTSTForPrediction",
    "PatchTSTConfig",
    dict(past_values=lambda: real(B, 16, 3), future_values=lambda: real(B, 4, 3)),
    num_input_channels=3,
    context_length=16,
    patch_length=4,
    patch_stride=4,
    prediction_length=4,
    d_model=16,
    ffn_dim=32,
    loss="mse",
    head_dropout=0.0,
    path_dropout=0.0,
    positional_dropout=0.0,
    ff_dropout=0.0,
)
add(
    "patchtsmixer",
    "PatchTSMixerForPrediction",
    "PatchTSMixerConfig",
    dict(past_values=lambda: real(B, 16, 3), future_values=lambda: real(B, 4, 3)),
    num_input_channels=3,
    context_length=16,
    patch_length=4,
    patch_stride=4,
    prediction_length=4,
    d_model=16,
    loss="mse",
    head_dropout=0.0,
)
CLIP_PARTS = dict(text_config=TINY, vision_config={**TINY, **IMAGE}, projection_dim=16)
for name, cls, config in [
    ("clip", "CLIPModel", "CLIPConfig"),
    ("siglip", "SiglipModel", "SiglipConfig"),
    ("chinese-clip", "ChineseCLIPModel", "ChineseCLIPConfig"),
    ("clap-like-altclip", "AltCLIPModel", "AltCLIPConfig"),
]:
    add(
        name,
        cls,
        config,
        dict(input_ids=ids, pixel_values=lambda: real(B, 3, 16, 16), attention_mask=mask),
        extra=dict(return_loss=True),
        bare=True,
        tweak=lambda c: setattr(c, "_attn_implementation", "eager"),
        **CLIP_PARTS,
    )
add(
    "clap",
    "ClapModel",
    "ClapConfig",
    dict(input_ids=ids, input_features=lambda: real(B, 1, 64, 8), attention_mask=mask),
    extra=dict(return_loss=True, is_longer=None),
    bare=True,
    tweak=lambda c: setattr(c, "_attn_implementation", "eager"),
    text_config=TINY,
    audio_config=dict(
        spec_size=32,
        num_mel_bins=8,
        patch_size=4,
        patch_stride=[4, 4],
        window_size=4,
        patch_embeds_hidden_size=8,
        depths=[1, 1],
        num_attention_heads=[2, 2],
        hidden_size=16,
        num_classes=5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
    projection_dim=16,
)
add(
    "perceiver",
    "PerceiverForMaskedLM",
    "PerceiverConfig",
    dict(inputs=ids, attention_mask=mask, labels=lambda: ids(4)),
    d_model=32,
    d_latents=16,
    num_latents=4,
    num_self_attends_per_block=1,
    num_blocks=1,
    num_self_attention_heads=2,
    num_cross_attention_heads=2,
    max_position_embeddings=8,
)
