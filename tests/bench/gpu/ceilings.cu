/* What the device can do: bytes per second of a copy, floating-point
 * operations per second of a product.
 *
 *	ceilings [MiB of the copy [extent of the product]]
 *
 * Prints one JSON object: medians of ROUNDS, timed by events on random
 * numbers (zeros multiply faster).  A copy counts bytes read and written; the
 * product is bf16 with sums in float32, by cuBLASLt's first answer, of three
 * square matrices of that extent: 2 n^3 operations.  Status 1 after an error.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

enum { ROUNDS = 15, WARM = 3, THREADS = 256 };
static const size_t WORKSPACE = 32 << 20;

static void
must(int status, const char *what)
{
	if (status == 0)
		return;
	fprintf(stderr, "ceilings: %s: status %d\n", what, status);
	exit(1);
}

/* Uniform in -1 to 1, by a hash of the place (splitmix64). */
static __global__ void
fill(__nv_bfloat16 *x, size_t n, unsigned long long seed)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		unsigned long long z = (i + seed) * 0x9e3779b97f4a7c15ull;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		x[i] = __float2bfloat16((float)(z >> 40) * 0x1p-23f - 1);
	}
}

static __global__ void
copy(uint4 *to, const uint4 *from, size_t n)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		to[i] = from[i];
}

static __nv_bfloat16 *
random_numbers(size_t n, unsigned long long seed)
{
	void *x = NULL;

	must(cudaMalloc(&x, n * sizeof(__nv_bfloat16)), "cudaMalloc");
	fill<<<1024, THREADS>>>((__nv_bfloat16 *)x, n, seed);
	must(cudaGetLastError(), "fill");
	return (__nv_bfloat16 *)x;
}

/* Median seconds of what `work` launches. */
template<class F> static double
timed(F work)
{
	std::vector<float> ms(ROUNDS);
	cudaEvent_t from, to;

	must(cudaEventCreate(&from), "cudaEventCreate");
	must(cudaEventCreate(&to), "cudaEventCreate");
	for (int i = -WARM; i < ROUNDS; i++) {
		must(cudaEventRecord(from), "cudaEventRecord");
		work();
		must(cudaEventRecord(to), "cudaEventRecord");
		must(cudaEventSynchronize(to), "cudaEventSynchronize");
		if (i >= 0)
			must(cudaEventElapsedTime(&ms[i], from, to), "time");
	}
	std::sort(ms.begin(), ms.end());
	return ms[ROUNDS / 2] * 1e-3;
}

/* Bytes per second of the better of the driver's copy and one by a kernel. */
static double
copy_ceiling(size_t bytes)
{
	__nv_bfloat16 *from = random_numbers(bytes / 2, 1);
	__nv_bfloat16 *to = random_numbers(bytes / 2, 2);
	double driver, kernel;

	driver = timed([&] {
		must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice),
		     "cudaMemcpyAsync");
	});
	kernel = timed([&] {
		copy<<<4096, THREADS>>>((uint4 *)to, (const uint4 *)from,
		                        bytes / sizeof(uint4));
		must(cudaGetLastError(), "copy");
	});
	cudaFree(from);
	cudaFree(to);
	return 2.0 * (double)bytes / std::min(driver, kernel);
}

static cublasLtMatrixLayout_t
square(size_t n)
{
	cublasLtMatrixLayout_t layout;

	must(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, n, n, n),
	     "cublasLtMatrixLayoutCreate");
	return layout;
}

static double
product_ceiling(size_t n)
{
	__nv_bfloat16 *a = random_numbers(n * n, 3);
	__nv_bfloat16 *b = random_numbers(n * n, 4);
	__nv_bfloat16 *y = random_numbers(n * n, 5);
	cublasLtMatmulHeuristicResult_t answer;
	cublasLtMatmulPreference_t preference;
	cublasLtMatrixLayout_t layout = square(n);
	cublasLtMatmulDesc_t product;
	cublasLtHandle_t handle;
	void *work = NULL;
	float one = 1, zero = 0;
	int found = 0;

	must(cublasLtCreate(&handle), "cublasLtCreate");
	must(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
	     "cublasLtMatmulDescCreate");
	must(cublasLtMatmulPreferenceCreate(&preference), "preference");
	must(cublasLtMatmulPreferenceSetAttribute(preference,
	     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE,
	     sizeof(WORKSPACE)), "preference");
	must(cudaMalloc(&work, WORKSPACE), "cudaMalloc");
	must(cublasLtMatmulAlgoGetHeuristic(handle, product, layout, layout,
	     layout, layout, preference, 1, &answer, &found), "heuristic");
	must(found == 1 ? 0 : -1, "no algorithm");
	double seconds = timed([&] {
		must(cublasLtMatmul(handle, product, &one, a, layout, b, layout,
		     &zero, y, layout, y, layout, &answer.algo, work, WORKSPACE,
		     0), "cublasLtMatmul");
	});
	return 2.0 * (double)n * (double)n * (double)n / seconds;
}

int
main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 4096;
	size_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 8192;
	double bandwidth = copy_ceiling(mib << 20), flops = product_ceiling(n);

	must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	printf("{\"copy_bytes_per_second\": %.6g, "
	       "\"product_flops_per_second\": %.6g, \"extent\": %zu}\n",
	       bandwidth, flops, n);
	return 0;
}
