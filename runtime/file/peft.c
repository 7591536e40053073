/* Reading adapter_config.json. */
#include "runtime/file/peft.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/file.h"
#include "runtime/file/names.h"
#include "runtime/support/glob.h"
#include "runtime/support/json.h"
#include "runtime/support/path.h"

enum { MAX_CONFIG = 1 << 20 };
enum { RANK = 1, ALPHA };

struct peft_reader {
	const char *const *weight;
	size_t n;
	double fallback[ALPHA + 1];     /* of RANK and ALPHA */
	double *overrides[ALPHA + 1];   /* [n]: NaN: the fallback */
	bool root;                      /* alpha / sqrt(rank) */
	int which;                      /* RANK or ALPHA, in a pattern */
	const char *refused;            /* a key of it */
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

bool
peft_same_module(const char *weight, const char *other)
{
	size_t n = peft_module(weight);

	return n == peft_module(other) && !strncmp(weight, other, n);
}

/* A regular expression as a glob, of at most as many bytes; false: it has more
 * than plain and escaped characters, '.' and ".*". */
static bool
regex_glob(const char *regex, char *glob)
{
	for (; *regex && strcmp(regex, "$"); regex++)
		if (*regex == '\\' && ispunct((unsigned char)regex[1])) {
			*glob++ = *regex++;
			*glob++ = *regex;
		} else if (regex[0] == '.' && regex[1] == '*') {
			*glob++ = '*';
			regex++;
		} else if (strchr("\\^$*+?{}[]()|", *regex)) {
			return false;
		} else {
			*glob++ = *regex == '.' ? '?' : *regex;
		}
	*glob = '\0';
	return true;
}

/* As PEFT takes a key: the regular expression "(.*\.)?(KEY)$" of a module's
 * whole name, and the first key that matches counts.  glob: "*." and KEY. */
static bool
apply_pattern(struct peft_reader *r, const char *glob, bool whole, double x)
{
	double *overrides = r->overrides[r->which];

	for (size_t i = 0; i < r->n; i++) {
		char *name = strndup(r->weight[i], peft_module(r->weight[i]));

		if (!name)
			return false;
		if (isnan(overrides[i])
		    && (glob_match(glob + 2, name)
		        || (!whole && glob_match(glob, name))))
			overrides[i] = x;
		free(name);
	}
	return true;
}

static bool
read_pattern(struct json *j, const char *key, void *reading)
{
	struct peft_reader *r = reading;
	bool whole = *key == '^', ok;
	char *glob = names_joined("*.", 2, key);
	double x;

	if (glob && !regex_glob(key + whole, glob + 2))
		r->refused = key;
	ok = json_number(j, &x) && !r->refused
		&& glob && apply_pattern(r, glob, whole, x);
	free(glob);
	return ok || json_fail(j, "out of memory");
}

static bool
read_config_key(struct json *j, const char *key, void *reading)
{
	struct peft_reader *r = reading;

	if (!strcmp(key, "r"))
		return json_number(j, &r->fallback[RANK]);
	if (!strcmp(key, "lora_alpha"))
		return json_number(j, &r->fallback[ALPHA]);
	if (!strcmp(key, "use_rslora") && json_word(j, "true"))
		return r->root = true;
	r->which = !strcmp(key, "alpha_pattern") ? ALPHA
		: !strcmp(key, "rank_pattern") ? RANK : 0;
	return r->which && !json_word(j, "null")
	       ? json_object(j, read_pattern, r) : r->which || json_skip(j);
}

static ckr_status
read_config_text(const char *path, char **text, uint64_t *size, struct err *e)
{
	int fd;
	ckr_status s;

	*text = NULL;
	CKR_TRY(file_open(path, &fd, size, e));
	s = *size <= MAX_CONFIG ? file_text(fd, path, *size, 0, text, e)
	    : err_set(e, CKR_EFORMAT, "%s: the file is too large", path);
	close(fd);
	return s;
}

static ckr_status
read_config(struct peft_reader *r, const char *path, struct err *e)
{
	struct json j = { 0 };
	uint64_t size;
	char *text, name[NAME_TEXT];
	ckr_status s = read_config_text(path, &text, &size, e);

	if (s == CKR_OK) {
		j.text = text;
		j.size = size;
		if (json_object(&j, read_config_key, r) && json_end(&j))
			s = CKR_OK;
		else if (r->refused)
			s = err_set(e, CKR_EUNSUPPORTED, "%s: %s_pattern: key "
			            "'%s': expected the name of a module, or a "
			            "regular expression that uses only '.', "
			            "'.*' and escaped characters; try: one key "
			            "per module", path,
			            r->which == RANK ? "rank" : "alpha",
			            err_name(name, sizeof(name), r->refused));
		else
			s = err_set(e, CKR_EFORMAT, "%s: not an adapter "
			            "configuration: %s (byte %zu)", path,
			            j.fault, j.at);
	}
	free(text);
	return s;
}

static double
scale_term(const struct peft_reader *r, int which, size_t i)
{
	return isnan(r->overrides[which][i]) ? r->fallback[which]
	       : r->overrides[which][i];
}

ckr_status
peft_scales(const char *adapters, const char *const *weight, size_t n,
            double *scale, bool *there, struct err *e)
{
	char *path = peft_config_path(adapters);
	double *overrides = malloc((2 * n + 1) * sizeof(*overrides));
	struct peft_reader r = { .weight = weight, .n = n,
		.fallback = { [RANK] = 8, [ALPHA] = 8 },   /* PEFT's defaults */
		.overrides = { [RANK] = overrides, [ALPHA] = overrides + n } };
	ckr_status s = path && overrides ? CKR_OK : err_no_memory(e);

	for (size_t i = 0; overrides && i < 2 * n; i++)
		overrides[i] = (double)NAN;
	*there = s == CKR_OK && !access(path, F_OK);
	if (*there)
		s = read_config(&r, path, e);
	for (size_t i = 0; i < n && *there && s == CKR_OK; i++) {
		double rank = scale_term(&r, RANK, i);
		double alpha = scale_term(&r, ALPHA, i);
		char name[NAME_TEXT];

		scale[i] = alpha / (r.root ? sqrt(rank) : rank);
		if (!(rank > 0) || !isfinite(scale[i]))
			s = err_set(e, CKR_EFORMAT, "%s: weight '%s': expected "
			            "a positive rank r and a finite "
			            "lora_alpha / r, found r %g and "
			            "lora_alpha %g", path,
			            err_name(name, sizeof(name), weight[i]),
			            rank, alpha);
	}
	free(path);
	free(overrides);
	return s;
}
