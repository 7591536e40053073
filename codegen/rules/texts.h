/* Texts of the machines' kernels/, embedded at build time. */
#ifndef CODEGEN_RULES_TEXTS_H
#define CODEGEN_RULES_TEXTS_H

extern const char codegen_text_ckr_abi[], codegen_text_math[],
	codegen_text_random[], codegen_text_rows[], codegen_text_index[],
	codegen_text_reduce[], codegen_text_gemm[], codegen_text_attention[],
	codegen_text_classifier[], codegen_text_update[], codegen_text_conv[],
	codegen_text_batchnorm[], codegen_text_pool[], codegen_text_half[],
	codegen_text_half_update[], codegen_text_thin[], codegen_text_blocks[],
	codegen_text_conv_blocks[], codegen_text_sample[],
	codegen_text_adafactor[], codegen_text_det[], codegen_text_norm[],
	codegen_text_shard[], codegen_text_cpu[], codegen_text_sums[],
	codegen_text_words[], codegen_text_eliminate[], codegen_text_places[],
	codegen_text_spots[], codegen_text_windows[];
extern const char codegen_text_device[], codegen_text_typed[],
	codegen_text_finite[],
	codegen_text_lines[], codegen_text_cuda_rows[],
	codegen_text_cuda_norm[],
	codegen_text_cuda_shard[], codegen_text_cuda_update[],
	codegen_text_cuda_squares[], codegen_text_cuda_adafactor[],
	codegen_text_cuda_classifier[], codegen_text_cuda_attention[],
	codegen_text_cuda_attention_grad[], codegen_text_mma[],
	codegen_text_cuda_flash[], codegen_text_cuda_flash_grad[],
	codegen_text_widen[],
	codegen_text_cuda_index[], codegen_text_cuda_scatter[],
	codegen_text_cuda_reduce[], codegen_text_cuda_conv[],
	codegen_text_cuda_batchnorm[], codegen_text_cuda_pool[],
	codegen_text_cuda_sample[], codegen_text_cuda_det[];

#endif
