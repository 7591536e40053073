/* A training step of a GPT in plain C, as one writes it without a compiler of
 * models: loops, OpenMP, and no library.  A peer for small models.
 *
 *     plain_gpt [steps] [threads]
 *
 * The GPT of steps.py's gpt1m: 5 layers of 128, 4 heads, 64 positions, 256
 * tokens, batch 8; AdamW.  Prints the median of a step's seconds, and the
 * losses of the first and the last step.  `plain_gpt check` compares gradients
 * with differences instead.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 8, T = 64, C = 128, H = 4, L = 5, V = 256, D = C / H, R = B * T };

/* Offsets of the parameters; those of a layer repeat. */
enum {
	LN1 = 0, QKV = LN1 + 2 * C, PROJ = QKV + 3 * C * (C + 1),
	LN2 = PROJ + C * (C + 1), UP = LN2 + 2 * C, DOWN = UP + 4 * C * (C + 1),
	LAYER = DOWN + C * (4 * C + 1),
	TOKEN = L * LAYER, PLACE = TOKEN + V * C, LAST = PLACE + T * C,
	PARAMS = LAST + 2 * C
};

struct layer {
	float in[R * C], n1[R * C], qkv[R * 3 * C], att[B * H * T * T],
		mix[R * C], mid[R * C], n2[R * C], up[R * 4 * C],
		gelu[R * 4 * C], mean[2][R], rstd[2][R];
};

static float param[PARAMS], grad[PARAMS], first[PARAMS], second[PARAMS];
static struct layer layer[L], d;
static float out[R * C], n3[R * C], mean3[R], rstd3[R], logit[R * V];
static float dx[R * C], dout[R * C];
static int token[R + 1];

/* ---- products: w is [n, k], and n biases follow it ---- */

static void
linear(float *y, const float *x, const float *w, int n, int k, int bias)
{
#pragma omp parallel for
	for (int r = 0; r < R; r += 8)
		for (int j = 0; j < n; j++) {
			float s[8] = { 0 };

			for (int i = 0; i < k; i++)
				for (int q = 0; q < 8; q++)
					s[q] += x[(r + q) * k + i]
						* w[j * k + i];
			for (int q = 0; q < 8; q++)
				y[(r + q) * n + j] = s[q]
					+ (bias ? w[n * k + j] : 0);
		}
}

static void
linear_back(float *dxs, float *dw, const float *dy, const float *x,
            const float *w, int n, int k, int bias)
{
#pragma omp parallel for
	for (int r = 0; r < R; r++) {
		memset(dxs + r * k, 0, (size_t)k * sizeof *dxs);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < k; i++)
				dxs[r * k + i] += dy[r * n + j] * w[j * k + i];
	}
#pragma omp parallel for
	for (int j = 0; j < n; j++)
		for (int r = 0; r < R; r++) {
			float g = dy[r * n + j];

			for (int i = 0; i < k; i++)
				dw[j * k + i] += g * x[r * k + i];
			if (bias)
				dw[n * k + j] += g;
		}
}

/* ---- layer normalisation, attention, GELU ---- */

static void
norm(float *y, float *mean, float *rstd, const float *x, const float *w)
{
#pragma omp parallel for
	for (int r = 0; r < R; r++) {
		float m = 0, v = 0;

		for (int i = 0; i < C; i++)
			m += x[r * C + i] / C;
		for (int i = 0; i < C; i++)
			v += (x[r * C + i] - m) * (x[r * C + i] - m) / C;
		mean[r] = m;
		rstd[r] = 1 / sqrtf(v + 1e-5f);
		for (int i = 0; i < C; i++)
			y[r * C + i] = (x[r * C + i] - m) * rstd[r] * w[i]
				+ w[C + i];
	}
}

/* Adds to dxs. */
static void
norm_back(float *dxs, float *dw, const float *dy, const float *x,
          const float *mean, const float *rstd, const float *w)
{
	for (int r = 0; r < R; r++) {
		float a = 0, b = 0;

		for (int i = 0; i < C; i++) {
			float h = (x[r * C + i] - mean[r]) * rstd[r];

			dw[i] += dy[r * C + i] * h;
			dw[C + i] += dy[r * C + i];
			a += dy[r * C + i] * w[i] / C;
			b += dy[r * C + i] * w[i] * h / C;
		}
		for (int i = 0; i < C; i++) {
			float h = (x[r * C + i] - mean[r]) * rstd[r];

			dxs[r * C + i] += (dy[r * C + i] * w[i] - a - h * b)
				* rstd[r];
		}
	}
}

static void
attention(float *mix, float *att, const float *qkv)
{
	float scale = 1 / sqrtf(D);

#pragma omp parallel for
	for (int bh = 0; bh < B * H; bh++) {
		const float *at = qkv + bh / H * T * 3 * C + bh % H * D;

		for (int t = 0; t < T; t++) {
			float *p = att + (bh * T + t) * T, most = -1e30f;
			float *y = mix + (bh / H * T + t) * C + bh % H * D;
			float sum = 0;

			for (int u = 0; u <= t; u++) {
				p[u] = 0;
				for (int i = 0; i < D; i++)
					p[u] += at[t * 3 * C + i]
						* at[u * 3 * C + C + i];
				p[u] *= scale;
				most = fmaxf(most, p[u]);
			}
			for (int u = 0; u <= t; u++)
				sum += p[u] = expf(p[u] - most);
			memset(y, 0, D * sizeof *y);
			for (int u = 0; u <= t; u++) {
				p[u] /= sum;
				for (int i = 0; i < D; i++)
					y[i] += p[u] * at[u * 3 * C + 2 * C + i];
			}
		}
	}
}

static void
attention_back(float *dqkv, const float *dmix, const float *att,
               const float *qkv)
{
	float scale = 1 / sqrtf(D);

	memset(dqkv, 0, R * 3 * C * sizeof *dqkv);
#pragma omp parallel for
	for (int bh = 0; bh < B * H; bh++) {
		const float *at = qkv + bh / H * T * 3 * C + bh % H * D;
		float *dat = dqkv + bh / H * T * 3 * C + bh % H * D;

		for (int t = 0; t < T; t++) {
			const float *p = att + (bh * T + t) * T;
			const float *dy = dmix + (bh / H * T + t) * C
				+ bh % H * D;
			float dp[T], dot = 0;

			for (int u = 0; u <= t; u++) {
				dp[u] = 0;
				for (int i = 0; i < D; i++) {
					dp[u] += dy[i]
						* at[u * 3 * C + 2 * C + i];
					dat[u * 3 * C + 2 * C + i] += p[u]
						* dy[i];
				}
				dot += dp[u] * p[u];
			}
			for (int u = 0; u <= t; u++) {
				float s = p[u] * (dp[u] - dot) * scale;

				for (int i = 0; i < D; i++) {
					dat[t * 3 * C + i] += s
						* at[u * 3 * C + C + i];
					dat[u * 3 * C + C + i] += s
						* at[t * 3 * C + i];
				}
			}
		}
	}
}

static void
gelu(float *y, const float *x)
{
#pragma omp parallel for
	for (int i = 0; i < R * 4 * C; i++)
		y[i] = 0.5f * x[i] * (1 + tanhf(0.7978845608f * (x[i]
			+ 0.044715f * x[i] * x[i] * x[i])));
}

static void
gelu_back(float *dy, const float *x)
{
#pragma omp parallel for
	for (int i = 0; i < R * 4 * C; i++) {
		float t = tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i]
		                                 * x[i]));

		dy[i] *= 0.5f * (1 + t) + 0.5f * x[i] * (1 - t * t)
			* 0.7978845608f * (1 + 0.134145f * x[i] * x[i]);
	}
}

/* ---- a step ---- */

static void
add(float *y, const float *a, const float *b)
{
	for (int i = 0; i < R * C; i++)
		y[i] = a[i] + b[i];
}

static float
forward(void)
{
	float loss = 0, *next;

	for (int r = 0; r < R; r++)
		for (int i = 0; i < C; i++)
			layer[0].in[r * C + i] = param[TOKEN + token[r] * C + i]
				+ param[PLACE + r % T * C + i];
	for (int l = 0; l < L; l++) {
		const float *w = param + l * LAYER;
		struct layer *a = &layer[l];

		next = l + 1 < L ? layer[l + 1].in : out;
		norm(a->n1, a->mean[0], a->rstd[0], a->in, w + LN1);
		linear(a->qkv, a->n1, w + QKV, 3 * C, C, 1);
		attention(a->mix, a->att, a->qkv);
		linear(a->mid, a->mix, w + PROJ, C, C, 1);
		add(a->mid, a->mid, a->in);
		norm(a->n2, a->mean[1], a->rstd[1], a->mid, w + LN2);
		linear(a->up, a->n2, w + UP, 4 * C, C, 1);
		gelu(a->gelu, a->up);
		linear(next, a->gelu, w + DOWN, C, 4 * C, 1);
		add(next, next, a->mid);
	}
	norm(n3, mean3, rstd3, out, param + LAST);
	linear(logit, n3, param + TOKEN, V, C, 0);
#pragma omp parallel for reduction(+ : loss)
	for (int r = 0; r < R; r++) {
		float *p = logit + r * V, most = -1e30f, sum = 0;

		for (int i = 0; i < V; i++)
			most = fmaxf(most, p[i]);
		for (int i = 0; i < V; i++)
			sum += p[i] = expf(p[i] - most);
		for (int i = 0; i < V; i++)
			p[i] /= sum;
		loss -= logf(p[token[r + 1]]) / R;
	}
	return loss;
}

static void
backward(void)
{
	memset(grad, 0, sizeof grad);
	for (int r = 0; r < R; r++) {
		logit[r * V + token[r + 1]] -= 1;
		for (int i = 0; i < V; i++)
			logit[r * V + i] /= R;
	}
	linear_back(dx, grad + TOKEN, logit, n3, param + TOKEN, V, C, 0);
	memset(dout, 0, sizeof dout);
	norm_back(dout, grad + LAST, dx, out, mean3, rstd3, param + LAST);
	for (int l = L - 1; l >= 0; l--) {
		const float *w = param + l * LAYER;
		float *g = grad + l * LAYER;
		struct layer *a = &layer[l];

		linear_back(d.gelu, g + DOWN, dout, a->gelu, w + DOWN, C,
		            4 * C, 1);
		gelu_back(d.gelu, a->up);
		linear_back(dx, g + UP, d.gelu, a->n2, w + UP, 4 * C, C, 1);
		norm_back(dout, g + LN2, dx, a->mid, a->mean[1], a->rstd[1],
		          w + LN2);
		linear_back(d.mix, g + PROJ, dout, a->mix, w + PROJ, C, C, 1);
		attention_back(d.qkv, d.mix, a->att, a->qkv);
		linear_back(dx, g + QKV, d.qkv, a->n1, w + QKV, 3 * C, C, 1);
		norm_back(dout, g + LN1, dx, a->in, a->mean[0], a->rstd[0],
		          w + LN1);
	}
	for (int r = 0; r < R; r++)
		for (int i = 0; i < C; i++) {
			grad[TOKEN + token[r] * C + i] += dout[r * C + i];
			grad[PLACE + r % T * C + i] += dout[r * C + i];
		}
}

static void
update(int step)
{
	float c1 = 1 - powf(0.9f, (float)step), c2 = 1 - powf(0.999f,
	                                                      (float)step);

#pragma omp parallel for
	for (int i = 0; i < PARAMS; i++) {
		first[i] = 0.9f * first[i] + 0.1f * grad[i];
		second[i] = 0.999f * second[i] + 0.001f * grad[i] * grad[i];
		param[i] -= 1e-3f * (first[i] / c1 / (sqrtf(second[i] / c2)
			+ 1e-8f) + 0.01f * param[i]);
	}
}

/* Along the gradient: its square is what the loss changes by. */
static int
check(void)
{
	double square = 0, up, down, step;

	forward();
	backward();
	for (int i = 0; i < PARAMS; i++)
		square += (double)grad[i] * grad[i];
	step = 3e-3 / sqrt(square);
	for (int i = 0; i < PARAMS; i++)
		param[i] += (float)(step * grad[i]);
	up = forward();
	for (int i = 0; i < PARAMS; i++)
		param[i] -= (float)(2 * step * grad[i]);
	down = forward();
	printf("gradient %.6f, by differences %.6f\n", sqrt(square),
	       (up - down) / (2 * step) / sqrt(square));
	return fabs((up - down) / (2 * step) / square - 1) > 0.01;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 0;
	double *seconds = calloc((size_t)steps + 1, sizeof *seconds);
	float begin = 0, end = 0;

	if (argc > 2)
		omp_set_num_threads(atoi(argv[2]));
	srand(1);
	for (int i = 0; i < PARAMS; i++)
		param[i] = 0.04f * ((float)rand() / (float)RAND_MAX - 0.5f);
	for (int l = 0; l <= L; l++)
		for (int i = 0; i < C; i++)
			if (l == L)
				param[LAST + i] = 1;
			else
				param[l * LAYER + LN1 + i] = param[l * LAYER
					+ LN2 + i] = 1;
	for (int i = 0; i <= R; i++)
		token[i] = rand() % V;
	if (argc > 1 && !strcmp(argv[1], "check"))
		return check();
	if (steps < 1 || !seconds) {
		fprintf(stderr, "usage: plain_gpt STEPS [THREADS] | check\n");
		return 2;
	}
	for (int i = 0; i < steps; i++) {
		double start = omp_get_wtime();

		end = forward();
		backward();
		update(i + 1);
		seconds[i] = omp_get_wtime() - start;
		begin = i ? begin : end;
	}
	qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
	printf("%.6f s a step, loss %.4f to %.4f\n", seconds[steps / 2],
	       (double)begin, (double)end);
	free(seconds);
	return 0;
}
