// Spellings of what configurations say.
#pragma once

#include "workloads/hf/part.hpp"

namespace pipeweaver::workloads::hf::key {

inline constexpr Key layers{"num_hidden_layers", "num_layers", "n_layers", "n_layer"};
inline constexpr Key vit_layers{"num_hidden_layers", "depth", "num_layers", "vt_num_hidden_layers", "layers"};
inline constexpr Key depth{"depth", "num_hidden_layers"};
inline constexpr Key hidden{"hidden_size", "n_embd", "vt_hidden_size", "width"};
inline constexpr Key embed{"embed_dim"};
inline constexpr Key ffn{"intermediate_size", "ffn_hidden_size", "vt_intermediate_size"};
inline constexpr Key ffn_of_dense{"intermediate_size_mlp", "dense_intermediate_size"};
inline constexpr Key ratio{"mlp_ratio"};
inline constexpr Key heads{"num_attention_heads",    "num_heads", "attention_heads", "n_head",
                           "vt_num_attention_heads", "heads"};
inline constexpr Key vit_heads{"num_heads", "num_attention_heads"};
inline constexpr Key kv_heads{"num_key_value_heads", "multi_query_group_num", "num_kv_heads", "num_attention_groups"};
inline constexpr Key head_dim{"head_dim", "kv_channels"};
inline constexpr Key vocab{"vocab_size", "padded_vocab_size"};
inline constexpr Key tied{"tie_word_embeddings"};
inline constexpr Key bias{"attention_bias", "add_qkv_bias", "qkv_bias"};
inline constexpr Key qk_norm{"use_qk_norm", "qk_normalization"};

inline constexpr Key experts{"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"};
inline constexpr Key top_k{"num_experts_per_tok", "top_k_experts", "moe_top_k", "moe_k"};
inline constexpr Key top_k_token{"num_experts_per_token"};
inline constexpr Key expert_ffn{"moe_intermediate_size", "expert_intermediate_size"};
inline constexpr Key shared_experts{"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"};
inline constexpr Key shared_ffn{"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                                "share_expert_dim", "shared_intermediate_size"};
inline constexpr Key expert_latent{"moe_latent_size"};
inline constexpr Key moe_used{"enable_moe_block"};
inline constexpr Key first_dense{"first_k_dense_replace", "moe_layer_start_index"};
inline constexpr Key moe_every{"moe_layer_freq"};
inline constexpr Key sparse_step{"decoder_sparse_step", "interleave_moe_layer_step"};
inline constexpr Key dense_layers{"mlp_only_layers"};
inline constexpr Key moe_layers{"moe_layers", "moe_layers_enum"};
inline constexpr Key last_of_experts{"moe_layer_end_index"};
inline constexpr Key expert_interval{"moe_layer_interval"};
inline constexpr Key shared_queries{"share_q_dim"};
inline constexpr Key mlp_types{"mlp_layer_types"};
inline constexpr Key predicted{"num_nextn_predict_layers", "mtp_num_hidden_layers"};

inline constexpr Key q_rank{"q_lora_rank"};
inline constexpr Key kv_rank{"kv_lora_rank"};
inline constexpr Key nope{"qk_nope_head_dim"};
inline constexpr Key rope{"qk_rope_head_dim"};
inline constexpr Key v_head{"v_head_dim"};
inline constexpr Key use_latent{"use_mla"};
inline constexpr Key indexed{"index_topk"};

inline constexpr Key window{"sliding_window"};
inline constexpr Key window_used{"use_sliding_window"};
inline constexpr Key window_from{"max_window_layers"};
inline constexpr Key window_pattern{"sliding_window_pattern", "_sliding_window_pattern"};
inline constexpr Key chunk{"attention_chunk_size"};
inline constexpr Key layer_types{"layer_types"};
inline constexpr Key full_every{"full_attention_interval"};
inline constexpr Key linear_key_heads{"linear_num_key_heads"};
inline constexpr Key linear_value_heads{"linear_num_value_heads"};
inline constexpr Key linear_key_dim{"linear_key_head_dim"};
inline constexpr Key linear_value_dim{"linear_value_head_dim"};
inline constexpr Key linear_convolution{"linear_conv_kernel_dim"};
inline constexpr Key output_gate{"attn_output_gate"};
inline constexpr Key mixers{"hybrid_override_pattern", "hybrid_layer_pattern"};
inline constexpr Key mixer_types{"layers_block_type"};
inline constexpr Key mamba_heads{"mamba_num_heads", "mamba_n_heads"};
inline constexpr Key mamba_head_dim{"mamba_head_dim", "mamba_d_head"};
inline constexpr Key mamba_groups{"n_groups", "mamba_n_groups"};
inline constexpr Key mamba_state{"ssm_state_size", "mamba_d_state"};
inline constexpr Key mamba_convolution{"conv_kernel", "mamba_d_conv"};
inline constexpr Key mamba_chunk{"chunk_size", "mamba_chunk_size"};
inline constexpr Key mamba_inner{"mamba_d_ssm"};
inline constexpr Key delta_part{"linear_attn_config"};
inline constexpr Key delta_full{"full_attn_layers"};
inline constexpr Key delta_convolution{"short_conv_kernel_size"};
inline constexpr Key cross_layers{"cross_attention_layers"};
inline constexpr Key global_head_dim{"global_head_dim"};
inline constexpr Key global_kv_heads{"num_global_key_value_heads"};
inline constexpr Key keys_are_values{"attention_k_eq_v"};
inline constexpr Key per_layer_hidden{"hidden_size_per_layer_input"};
inline constexpr Key shared_kv_layers{"num_kv_shared_layers"};
inline constexpr Key double_wide{"use_double_wide_mlp"};

inline constexpr Key patch{"patch_size", "image_patch_size"};
inline constexpr Key temporal_patch{"temporal_patch_size"};
inline constexpr Key image{"image_size", "image_default_input_size"};
inline constexpr Key forced_image{"force_image_size"};
inline constexpr Key merge{"spatial_merge_size", "hidden_stride", "merge_size"};
inline constexpr Key downsample{"downsample_factor"};
inline constexpr Key queries{"query_num"};
inline constexpr Key visual_vocab{"visual_vocab_size"};
inline constexpr Key adapter_part{"adapter_config"};
inline constexpr Key kept_layers{"vit_layers"};
inline constexpr Key alignment{"alignment_intermediate_size"};
inline constexpr Key projector_hidden{"projector_hidden_size"};
inline constexpr Key merge_kernel{"merge_kernel_size"};
inline constexpr Key shuffle{"downsample_ratio", "pixel_shuffle_ratio"};
inline constexpr Key scale{"scale_factor"};
inline constexpr Key pooling{"pooling_kernel_size"};
inline constexpr Key image_tokens{"mm_tokens_per_image"};
inline constexpr Key soft_tokens{"vision_soft_tokens_per_image"};
inline constexpr Key vit_window{"window_size"};
inline constexpr Key full_blocks{"fullatt_block_indexes"};
inline constexpr Key deepstack{"deepstack_visual_indexes"};
inline constexpr Key out_hidden{"out_hidden_size", "output_hidden_size"};
inline constexpr Key stride{"understand_projector_stride"};
inline constexpr Key global_layers{"num_global_layers"};
inline constexpr Key vision_output{"vision_output_dim"};
inline constexpr Key tiles{"max_num_tiles"};
inline constexpr Key projector_in{"projector_input_dim"};
inline constexpr Key projector_out{"projector_output_dim"};
inline constexpr Key tower_name{"mm_vision_tower"};

// Of image processors.
inline constexpr Key min_pixels{"min_pixels"};
inline constexpr Key max_pixels{"max_pixels"};
inline constexpr Key processor_size{"size"};
inline constexpr Key shortest_edge{"shortest_edge"};
inline constexpr Key longest_edge{"longest_edge"};
inline constexpr Key frame_rate{"fps"};
inline constexpr Key min_frames{"min_frames"};
inline constexpr Key max_frames{"max_frames"};
inline constexpr Key crop_size{"crop_size"};
inline constexpr Key center_crop{"do_center_crop"};
inline constexpr Key processor_merge{"merge_size", "spatial_merge_size", "merge_kernel_size", "pooling_kernel_size"};
inline constexpr Key patch_limit{"in_token_limit"};
inline constexpr Key soft_tokens_most{"max_soft_tokens"};

inline constexpr Key audio_layers{"encoder_layers"};
inline constexpr Key audio_hidden{"d_model"};
inline constexpr Key audio_ffn{"encoder_ffn_dim"};
inline constexpr Key audio_heads{"encoder_attention_heads"};

inline constexpr Key dit_layers{"num_layers", "n_layers", "num_visual_blocks"};
inline constexpr Key single_layers{"num_single_layers"};
inline constexpr Key dit_heads{"num_attention_heads", "num_heads", "n_heads"};
inline constexpr Key dit_head_dim{"attention_head_dim"};
inline constexpr Key dit_width{"dim", "hidden_size", "model_dim"};
inline constexpr Key dit_ffn{"ffn_dim", "ff_dim"};
inline constexpr Key in_channels{"in_channels", "in_dim", "in_visual_dim"};
inline constexpr Key patch_t{"patch_size_t"};
inline constexpr Key text_dim{"joint_attention_dim", "text_embed_dim", "text_dim", "cap_feat_dim", "in_text_dim"};
inline constexpr Key caption_dim{"caption_channels"};
inline constexpr Key cross_dim{"cross_attention_dim"};
inline constexpr Key pooled_dim{"pooled_projection_dim"};
inline constexpr Key guidance{"guidance_embeds"};
inline constexpr Key dit_qk_norm{"qk_norm"};
inline constexpr Key refiners{"num_refiner_layers", "n_refiner_layers"};
inline constexpr Key time_dim{"time_embed_dim", "time_dim"};
inline constexpr Key dit_kv_heads{"num_kv_heads", "n_kv_heads"};
inline constexpr Key multiple{"multiple_of"};
inline constexpr Key ffn_multiplier{"ffn_dim_multiplier"};
inline constexpr Key patches{"all_patch_size"};
inline constexpr Key modulation_rank{"adaln_lora_dim"};
inline constexpr Key approximator_width{"approximator_hidden_dim"};
inline constexpr Key approximator_layers{"approximator_layers"};
inline constexpr Key approximator_in{"approximator_num_channels"};
inline constexpr Key text_blocks{"num_text_blocks"};
inline constexpr Key axes{"axes_dims"};
inline constexpr Key control_layers{"vace_layers"};
inline constexpr Key control_channels{"vace_in_channels"};
inline constexpr Key face_every{"inject_face_latents_blocks"};
inline constexpr Key audio_dit_heads{"audio_num_attention_heads"};
inline constexpr Key audio_dit_head_dim{"audio_attention_head_dim"};
inline constexpr Key audio_dit_channels{"audio_in_channels"};
inline constexpr Key text_length{"max_text_seq_length", "text_len"};
inline constexpr Key added_kv{"added_kv_proj_dim"};
inline constexpr Key image_dim{"image_dim"};
inline constexpr Key dual_attention{"dual_attention_layers"};

/// All of them, none of which is a misspelling of another.
inline constexpr std::array all{layers,
                                vit_layers,
                                depth,
                                vit_heads,
                                hidden,
                                embed,
                                ffn,
                                ffn_of_dense,
                                ratio,
                                heads,
                                kv_heads,
                                head_dim,
                                vocab,
                                tied,
                                bias,
                                qk_norm,
                                experts,
                                top_k,
                                expert_ffn,
                                shared_experts,
                                shared_ffn,
                                moe_used,
                                first_dense,
                                moe_every,
                                sparse_step,
                                dense_layers,
                                moe_layers,
                                mlp_types,
                                predicted,
                                q_rank,
                                kv_rank,
                                nope,
                                rope,
                                v_head,
                                window,
                                window_used,
                                window_from,
                                window_pattern,
                                chunk,
                                layer_types,
                                full_every,
                                linear_key_heads,
                                linear_value_heads,
                                linear_key_dim,
                                linear_value_dim,
                                linear_convolution,
                                output_gate,
                                cross_layers,
                                global_head_dim,
                                global_kv_heads,
                                keys_are_values,
                                per_layer_hidden,
                                shared_kv_layers,
                                patch,
                                temporal_patch,
                                image,
                                forced_image,
                                merge,
                                merge_kernel,
                                shuffle,
                                scale,
                                pooling,
                                image_tokens,
                                soft_tokens,
                                vit_window,
                                full_blocks,
                                deepstack,
                                out_hidden,
                                global_layers,
                                vision_output,
                                tiles,
                                projector_in,
                                projector_out,
                                tower_name,
                                audio_layers,
                                audio_hidden,
                                audio_ffn,
                                audio_heads,
                                dit_layers,
                                single_layers,
                                dit_head_dim,
                                dit_width,
                                dit_ffn,
                                in_channels,
                                patch_t,
                                text_dim,
                                pooled_dim,
                                guidance,
                                dit_qk_norm,
                                refiners,
                                time_dim,
                                text_length,
                                added_kv,
                                image_dim,
                                dual_attention,
                                min_pixels,
                                max_pixels,
                                processor_size,
                                shortest_edge,
                                longest_edge,
                                frame_rate,
                                min_frames,
                                max_frames,
                                crop_size,
                                center_crop,
                                processor_merge,
                                patch_limit,
                                soft_tokens_most,
                                expert_latent,
                                use_latent,
                                indexed,
                                mixers,
                                mixer_types,
                                mamba_heads,
                                mamba_head_dim,
                                mamba_groups,
                                mamba_state,
                                mamba_convolution,
                                mamba_chunk,
                                mamba_inner,
                                delta_part,
                                delta_full,
                                delta_convolution,
                                double_wide,
                                downsample,
                                queries,
                                visual_vocab,
                                adapter_part,
                                kept_layers,
                                alignment,
                                projector_hidden,
                                caption_dim,
                                cross_dim,
                                dit_kv_heads,
                                multiple,
                                ffn_multiplier,
                                patches,
                                modulation_rank,
                                approximator_width,
                                approximator_layers,
                                approximator_in,
                                text_blocks,
                                axes,
                                control_layers,
                                control_channels,
                                face_every,
                                audio_dit_heads,
                                audio_dit_head_dim,
                                audio_dit_channels,
                                dit_heads,
                                last_of_experts,
                                expert_interval,
                                shared_queries,
                                stride};

}  // namespace pipeweaver::workloads::hf::key
