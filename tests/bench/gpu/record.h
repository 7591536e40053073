/* After tests/cuda/emulate.h: launches and products are printed, and nothing is
 * computed.  A line: the kernel, blocks and threads, or "gemm", m, n, k, batch
 * and bytes of an element of a, of y and of c, 0 if there is none. */
#ifndef TESTS_BENCH_GPU_RECORD_H
#define TESTS_BENCH_GPU_RECORD_H

#undef CKR_LAUNCH
#undef CKR_LAUNCH_MEETING
#define CKR_LAUNCH(kernel, blocks, threads, shared, env, ...) \
	record_launch<(kernel)>((long long)(blocks), (long long)(threads))
#define CKR_LAUNCH_MEETING CKR_LAUNCH

template <auto K> static void
record_launch(long long blocks, long long threads)
{
	printf("%s\t%lld\t%lld\n", strstr(__PRETTY_FUNCTION__, "K = ") + 4,
	       blocks, threads);
}

#define RECORD_ENVIRONMENT(env, ckr_env, ckr_gemm) \
	struct ckr_env env = {}; \
	env.device = &env; \
	env.threads = 1; \
	env.gemm = [](ckr_env *, const ckr_gemm *g, const void *, \
	              const void *, const void *, const void *, void *, \
	              void *, uint64_t) { record_gemm(g); }; \
	env.gemm_epilogue = [](ckr_env *, const ckr_gemm *g, const void *, \
	                       const void *, const void *, const void *, \
	                       void *, void *, void *, uint64_t) { \
		record_gemm(g); \
		return 1; \
	}

template <typename G> static void
record_gemm(const G *g)
{
	const auto bytes = [](int type) { return !type ? 0 : type == 1 ? 4 : 2; };

	printf("gemm\t%lld\t%lld\t%lld\t%lld\t%d\t%d\t%d\n",
	       (long long)g->m, (long long)g->n, (long long)g->k,
	       (long long)(g->batch > 1 ? g->batch : 1), bytes(g->a),
	       bytes(g->y), bytes(g->c));
}

#endif
