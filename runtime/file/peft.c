/* Reading adapter_config.json. */
#include "runtime/file/peft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/file.h"
#include "runtime/file/names.h"
#include "runtime/support/json.h"
#include "runtime/support/path.h"

enum { MAX_CONFIG = 1 << 20 };
enum { RANK = 1, ALPHA };

struct reading {
	const char *const *weight;
	size_t n;
	double usual[ALPHA + 1];        /* of RANK and ALPHA */
	double *own[ALPHA + 1];         /* [n]: NaN: the usual one */
	bool root;                      /* alpha / sqrt(rank) */
	int which;                      /* RANK or ALPHA, in a pattern */
};

char *
peft_config_path(const char *adapters)
{
	return names_joined(adapters, (size_t)(path_base(adapters) - adapters),
	                    "adapter_config.json");
}

size_t
peft_module(const char *weight)
{
	const char *dot = strrchr(weight, '.');

	return dot ? (size_t)(dot - weight) : strlen(weight);
}

/* Keys of patterns are the ends of modules' names, from a dot on. */
static bool
ends_with_key(const char *weight, const char *key)
{
	size_t n = peft_module(weight), k = strlen(key);

	return k <= n && !memcmp(weight + n - k, key, k)
	       && (k == n || weight[n - k - 1] == '.');
}

static bool
read_own(struct json *j, const char *key, void *reading)
{
	struct reading *r = reading;
	double x;

	if (!json_number(j, &x))
		return false;
	for (size_t i = 0; i < r->n; i++)
		if (ends_with_key(r->weight[i], key))
			r->own[r->which][i] = x;
	return true;
}

static bool
read_setting(struct json *j, const char *key, void *reading)
{
	struct reading *r = reading;

	if (!strcmp(key, "r"))
		return json_number(j, &r->usual[RANK]);
	if (!strcmp(key, "lora_alpha"))
		return json_number(j, &r->usual[ALPHA]);
	if (!strcmp(key, "use_rslora") && json_word(j, "true"))
		return r->root = true;
	r->which = !strcmp(key, "alpha_pattern") ? ALPHA
		: !strcmp(key, "rank_pattern") ? RANK : 0;
	return r->which && !json_word(j, "null") ? json_object(j, read_own, r)
	       : r->which || json_skip(j);
}

/* The text as a whole, ended by NUL; the caller's to free. */
static ckr_status
read_text(const char *path, char **text, uint64_t *size, struct err *e)
{
	int fd;
	ckr_status s;

	*text = NULL;
	CKR_TRY(file_open(path, &fd, size, e));
	if (*size <= MAX_CONFIG)
		*text = calloc(1, *size + 1);
	s = *text ? file_read(fd, path, *text, *size, 0, e)
	    : err_set(e, CKR_EFORMAT, "%s: too large", path);
	close(fd);
	return s;
}

static ckr_status
parse(struct reading *r, const char *path, struct err *e)
{
	struct json j = { 0 };
	uint64_t size;
	char *text;
	ckr_status s = read_text(path, &text, &size, e);

	if (s == CKR_OK) {
		j.text = text;
		j.size = size;
		if (!json_object(&j, read_setting, r) || !json_end(&j))
			s = err_set(e, CKR_EFORMAT, "%s: not a configuration "
			            "of adapters: %s (byte %zu)", path,
			            j.fault, j.at);
	}
	free(text);
	return s;
}

static double
pick(const struct reading *r, int which, size_t i)
{
	return isnan(r->own[which][i]) ? r->usual[which] : r->own[which][i];
}

ckr_status
peft_scales(const char *adapters, const char *const *weight, size_t n,
            double *scale, bool *there, struct err *e)
{
	char *path = peft_config_path(adapters);
	double *own = malloc((2 * n + 1) * sizeof(*own));
	struct reading r = { .weight = weight, .n = n,
		.usual = { [RANK] = 8, [ALPHA] = 8 },   /* PEFT's defaults */
		.own = { [RANK] = own, [ALPHA] = own + n } };
	ckr_status s = path && own ? CKR_OK
		: err_set(e, CKR_ENOMEM, "out of memory");

	for (size_t i = 0; own && i < 2 * n; i++)
		own[i] = (double)NAN;
	*there = s == CKR_OK && !access(path, F_OK);
	if (*there)
		s = parse(&r, path, e);
	for (size_t i = 0; i < n && *there && s == CKR_OK; i++) {
		double rank = pick(&r, RANK, i);

		scale[i] = pick(&r, ALPHA, i) / (r.root ? sqrt(rank) : rank);
	}
	free(path);
	free(own);
	return s;
}
