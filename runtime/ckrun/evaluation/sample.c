/* ckrun sample: text from a model that predicts the next token.
 *
 * Each token takes one evaluation of the whole window: the tokens so far stand
 * at its beginning, or the last ones fill it, and the logits behind the last
 * token give the next one.  What follows does not matter in a causal model.
 */
#include "runtime/ckrun/evaluation/evaluation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"
#include "runtime/base/rng.h"
#include "runtime/data/pair.h"
#include "runtime/support/number.h"

struct sampler {
	ckr_ctx *m;
	const struct ckrun_options *o;
	struct ckr_info tokens, logits;
	int64_t window, classes;        /* tokens of a row; of the vocabulary */
	int64_t *text;                  /* the prompt and what follows */
	int64_t n, given, most;         /* given: of the prompt */
	char *batch;                    /* the input's tokens, or the logits */
	double *weight;                 /* [classes] */
	int64_t *order;                 /* [classes] */
};

/* ---- inputs ---- */

static bool
is_integer_input(const struct ckr_info *i)
{
	return !strcmp(i->kind, "input") && strchr("iu", *i->dtype);
}

static ckr_status
set_filled(struct sampler *s, const struct ckr_info *i, enum feed_source from)
{
	uint8_t dtype = dtype_from_text(i->dtype);
	uint64_t size = dtype_row[dtype].nbytes, n = i->nbytes / size;
	char *x = malloc(i->nbytes + 1);
	ckr_status st = CKR_OK;
	size_t bad;

	if (!x)
		return ckr_fail(s->m, CKR_ENOMEM, "out of memory");
	for (uint64_t k = 0; k < n; k++) {
		int64_t one = from == FROM_ONES ? 1 : from == FROM_ZEROS ? 0
			: (int64_t)(k % (uint64_t)i->dim[i->rank - 1]);

		dtype_convert(x + k * size, dtype, &one, CKR_I64, 1, &bad);
	}
	st = ckr_set(s->m, i->name, x, i->nbytes);
	free(x);
	return st;
}

/* The one input of tokens; masks, positions and token types beside it. */
static ckr_status
find_tokens(struct sampler *s)
{
	struct ckr_info i;
	char name[NAME_TEXT];
	int found = 0;

	for (size_t k = 0; ckr_tensor(s->m, k, &i) == CKR_OK; k++) {
		enum feed_source role = pair_role(i.name);

		if (strcmp(i.kind, "input") || i.label)
			continue;
		if (role != FROM_NOWHERE && i.rank > 0) {
			CKR_TRY(set_filled(s, &i, role));
			continue;
		}
		if (!is_integer_input(&i) || i.rank < 1 || i.rank > 2
		    || found++)
			return ckr_fail(s->m, CKR_EUNSUPPORTED, "ckrun sample "
			                "needs a model with one input of "
			                "tokens [batch,length]; '%s' is %s",
			                err_name(name, sizeof(name), i.name),
			                found > 1 ? "a second one" : "another");
		s->tokens = i;
	}
	if (!found)
		return ckr_fail(s->m, CKR_EUNSUPPORTED, "ckrun sample needs a "
		                "model with an input of tokens");
	s->window = s->tokens.dim[s->tokens.rank - 1];
	return CKR_OK;
}

/* Logits of every token of the window, the first row's in front. */
static ckr_status
check_logits(struct sampler *s)
{
	const struct ckr_info *y = &s->logits;
	uint64_t each = dtype_row[dtype_from_text(y->dtype)].nbytes;
	uint64_t rows = s->tokens.nbytes
		/ dtype_row[dtype_from_text(s->tokens.dtype)].nbytes;
	char name[NAME_TEXT];

	s->classes = y->rank ? y->dim[y->rank - 1] : 0;
	if (dtype_row[dtype_from_text(y->dtype)].cls == 'f' && s->classes > 0
	    && y->nbytes / each == rows * (uint64_t)s->classes)
		return CKR_OK;
	return ckr_fail(s->m, CKR_EUNSUPPORTED, "output '%s' has no logits for "
	                "each of the %llu tokens of a batch; choose another "
	                "output with --name, or compile with ckc --output "
	                "logits",
	                err_name(name, sizeof(name), y->name),
	                (unsigned long long)rows);
}

/* ---- the prompt ---- */

/* Bytes of text, or numbers separated by commas. */
static ckr_status
read_prompt(struct sampler *s)
{
	const char *p = s->o->prompt ? s->o->prompt : "";
	bool ids = s->o->tokens && strcmp(s->o->tokens, "bytes") != 0;

	while (*p) {
		uint64_t id = (unsigned char)*p;
		size_t n = ids ? strcspn(p, ",") : 1;
		char word[48];

		snprintf(word, sizeof(word), "%.*s", n < 40 ? (int)n : 40, p);
		if (ids && !number_whole(word, INT64_MAX, &id))
			return ckr_fail(s->m, CKR_EARG, "--prompt: expected "
			                "numbers of tokens such as 15,7,9, "
			                "found '%s'", word);
		if (id >= (uint64_t)s->classes)
			return ckr_fail(s->m, CKR_EARG, "--prompt: token %llu "
			                "is beyond the model's %lld",
			                (unsigned long long)id,
			                (long long)s->classes);
		s->text[s->n++] = (int64_t)id;
		p += n;
		p += ids && *p == ',';
	}
	s->given = s->n;
	if (!s->n)
		s->text[s->n++] = 0;
	return CKR_OK;
}

/* ---- one token ---- */

static ckr_status
evaluate_window(struct sampler *s, int64_t first, int64_t count)
{
	uint8_t dtype = dtype_from_text(s->tokens.dtype);
	uint64_t size = dtype_row[dtype].nbytes;
	size_t bad;

	memset(s->batch, 0, s->tokens.nbytes);
	for (int64_t i = 0; i < count; i++)
		dtype_convert(s->batch + (uint64_t)i * size, dtype,
		              &s->text[first + i], CKR_I64, 1, &bad);
	CKR_TRY(ckr_set(s->m, s->tokens.name, s->batch, s->tokens.nbytes));
	CKR_TRY(ckr_eval(s->m, NULL));
	return ckr_get(s->m, s->logits.name, s->batch, s->logits.nbytes);
}

static int
compare_scores(const void *a, const void *b, void *weight)
{
	const double *w = weight;
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return w[x] > w[y] ? -1 : w[x] < w[y] ? 1 : x < y ? -1 : x > y;
}

/* Uniform in 0..1. */
static double
draw_uniform(const struct sampler *s)
{
	return (double)rng_below(s->o->seed, RNG_SAMPLE, (uint64_t)s->n,
	                         UINT64_C(1) << 53) * 0x1p-53;
}

/* By the logits at row `at`: the softmax of logits / temperature over the K
 * largest; temperature 0: the largest. */
static ckr_status
choose_token(struct sampler *s, int64_t at, int64_t *token)
{
	uint8_t dtype = dtype_from_text(s->logits.dtype);
	uint64_t size = dtype_row[dtype].nbytes;
	const char *row = s->batch + (uint64_t)(at * s->classes) * size;
	int64_t k = s->o->top_k && s->o->top_k < (uint64_t)s->classes
		? (int64_t)s->o->top_k : s->classes;
	double sum = 0, most, u;

	*token = 0;
	for (int64_t i = 0; i < s->classes; i++) {
		s->weight[i] = dtype_double(dtype, row + (uint64_t)i * size);
		s->order[i] = i;
		if (isnan(s->weight[i]))
			return ckr_fail(s->m, CKR_ENAN, "the logits contain "
			                "NaN");
		if (s->weight[i] > s->weight[*token])
			*token = i;
	}
	if (!(s->o->temperature > 0))
		return CKR_OK;
	qsort_r(s->order, (size_t)s->classes, sizeof(*s->order),
	        compare_scores, s->weight);
	most = s->weight[s->order[0]];
	for (int64_t i = 0; i < k; i++) {
		double *w = &s->weight[s->order[i]];

		*w = exp((*w - most) / s->o->temperature);
		sum += *w;
	}
	u = draw_uniform(s) * sum;
	for (int64_t i = 0; i < k && u >= 0; i++) {
		*token = s->order[i];
		u -= s->weight[s->order[i]];
	}
	return CKR_OK;
}

static void
print_token(const struct sampler *s, int64_t token)
{
	if (ckr_rank(s->m))
		return;
	if (s->o->tokens && strcmp(s->o->tokens, "bytes") != 0)
		printf(" %lld", (long long)token);
	else
		putchar((int)token);
	fflush(stdout);
}

static ckr_status
write_text(struct sampler *s)
{
	for (int64_t i = 0; i < s->given; i++)
		print_token(s, s->text[i]);
	while (s->n < s->most) {
		int64_t count = s->n < s->window ? s->n : s->window;
		int64_t token = 0;

		CKR_TRY(check_interrupted(s->m));
		CKR_TRY(evaluate_window(s, s->n - count, count));
		CKR_TRY(choose_token(s, count - 1, &token));
		s->text[s->n++] = token;
		print_token(s, token);
	}
	if (!ckr_rank(s->m))
		putchar('\n');
	return CKR_OK;
}

static ckr_status
allocate_text(struct sampler *s)
{
	const char *p = s->o->prompt ? s->o->prompt : "";
	uint64_t room = s->tokens.nbytes > s->logits.nbytes ? s->tokens.nbytes
		: s->logits.nbytes;

	s->text = calloc(strlen(p) + s->o->length + 1, sizeof(*s->text));
	s->batch = malloc(room + 1);
	s->weight = calloc((size_t)s->classes, sizeof(*s->weight));
	s->order = calloc((size_t)s->classes, sizeof(*s->order));
	return s->text && s->batch && s->weight && s->order ? CKR_OK
	       : ckr_fail(s->m, CKR_ENOMEM, "out of memory");
}

ckr_status
sample_text(ckr_ctx *m, const struct ckrun_options *o)
{
	struct sampler s = { .m = m, .o = o };
	ckr_status st;

	CKR_TRY(find_prediction(m, o->name, &s.logits));
	CKR_TRY(find_tokens(&s));
	CKR_TRY(check_logits(&s));
	st = allocate_text(&s);
	if (st == CKR_OK)
		st = read_prompt(&s);
	s.most = s.n + (int64_t)o->length;
	if (st == CKR_OK)
		st = write_text(&s);
	free(s.text);
	free(s.batch);
	free(s.weight);
	free(s.order);
	return st;
}
