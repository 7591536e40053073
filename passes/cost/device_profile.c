/* Device profiles: by name or from a file.
 *
 * what    Files are what device_json writes, or what ckrun --profile measured:
 *         its best rates, and the seconds of every op for ops of equal work.
 */
#include "passes/cost/cost.h"
#include "runtime/support/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two cores of a present x86 server. */
static const struct device_profile device_default = {
	.name = "cpu",
	.product_flops = 400e9,
	.product_flops16 = 400e9,
	.vector_flops = 60e9,
	.bandwidth = 40e9,
	.launch = 1e-6,
	.serial = 1,
	.link = 10e9,
	.link_latency = 2e-6,
	.host = 1.5e9,
	.host_latency = 50e-6,
};

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-+()"

enum { FILE_MAX = 64 << 20 };

const struct device_profile *
device_of(const Graph *g)
{
	return g->device ? g->device : &device_default;
}

static double
share(double x)
{
	return x > 0 ? x : 1;
}

/* Roofline: seconds = max(FLOPs / rate, bytes / bandwidth) + launch.  Where
 * products are serial they and memory add up.  Vector work of an op with
 * products is that of a kernel made for it, which reaches the whole rate. */
double
device_seconds(const struct device_profile *d, Op op, bool has_16bit,
               const struct cost *c)
{
	double product = (c->product + 2 * d->product_start * c->started)
		/ ((has_16bit ? d->product_flops16 : d->product_flops)
		   * share(d->product_share));
	double vector = (c->flops - c->product) / (d->vector_flops
		* (c->product > 0 ? 1 : share(d->vector_share)));
	double memory = c->bytes / (d->bandwidth * share(d->memory_share)), sec;

	if (d->serial > 0)
		sec = product + (vector > memory ? vector : memory);
	else
		sec = product + vector > memory ? product + vector : memory;
	if (has_16bit && d->scale16[op] > 0)
		sec *= d->scale16[op];
	else if (d->scale[op] > 0)
		sec *= d->scale[op];
	return sec > 0 ? sec + d->launch : 0;
}

static int64_t
greatest_common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Groups need not begin where nodes do: in every node are as many members as in
 * what both have in common. */
struct ring_link
device_ring_link(const struct device_profile *d, struct ring ring)
{
	const struct device_profile *of = d->link > 0 ? d : &device_default;
	struct ring_link link = { of->link, of->link_latency, false };
	int64_t inside;

	if (d->node < 1 || d->node > GROUP_MAX || d->net <= 0)
		return link;
	inside = greatest_common_divisor(ring.ranks * ring.stride,
	                                 (int64_t)d->node) / ring.stride;
	if (inside >= ring.ranks)
		return link;
	link.network = true;
	inside = inside < 1 ? 1 : inside;
	if (d->net * (double)inside < link.rate)
		link.rate = d->net * (double)inside;
	if (d->net_latency > link.latency)
		link.latency = d->net_latency;
	return link;
}

/* A ring takes ranks - 1 messages one after the other, at least. */
double
device_ring_seconds(const struct device_profile *d, struct ring ring,
                    double bytes)
{
	struct ring_link link = device_ring_link(d, ring);

	return link.latency * (double)(ring.ranks - 1) + bytes / link.rate;
}

double
device_host_seconds(const struct device_profile *d, double bytes)
{
	const struct device_profile *of = d->host > 0 ? d : &device_default;

	return of->host_latency + bytes / of->host;
}

/* ---- JSON ---- */

static const struct {
	const char *key;
	size_t at;
} field[] = {
	{ "product_flops", offsetof(struct device_profile, product_flops) },
	{ "product_flops16", offsetof(struct device_profile, product_flops16) },
	{ "vector_flops", offsetof(struct device_profile, vector_flops) },
	{ "bandwidth", offsetof(struct device_profile, bandwidth) },
	{ "product_share", offsetof(struct device_profile, product_share) },
	{ "vector_share", offsetof(struct device_profile, vector_share) },
	{ "memory_share", offsetof(struct device_profile, memory_share) },
	{ "product_start", offsetof(struct device_profile, product_start) },
	{ "launch_seconds", offsetof(struct device_profile, launch) },
	{ "memory_bytes", offsetof(struct device_profile, memory) },
	{ "serial", offsetof(struct device_profile, serial) },
	{ "link_bytes_per_second", offsetof(struct device_profile, link) },
	{ "link_latency_seconds", offsetof(struct device_profile,
	                                   link_latency) },
	{ "node_ranks", offsetof(struct device_profile, node) },
	{ "net_bytes_per_second", offsetof(struct device_profile, net) },
	{ "net_latency_seconds", offsetof(struct device_profile, net_latency) },
	{ "host_bytes_per_second", offsetof(struct device_profile, host) },
	{ "host_latency_seconds", offsetof(struct device_profile,
	                                   host_latency) },
};

enum { NFIELD = sizeof field / sizeof *field };

/* ", "key": {...}", or nothing. */
static const char *
scales_json(const char *key, const double *scale, Arena *arena)
{
	const char *text = NULL;

	for (Op op = OP_NONE; op < OP_COUNT; op++)
		if (scale[op] > 0)
			text = arena_printf(arena, "%s%s\"%s\": %.4g",
			                    text ? text : "", text ? ", " : "",
			                    op_info[op].text, scale[op]);
	return text ? arena_printf(arena, ", \"%s\": {%s}", key, text) : "";
}

char *
device_json(const struct device_profile *d, Arena *arena)
{
	char *text = arena_printf(arena, "{\"name\": \"%s\"", d->name);

	for (int i = 0; i < NFIELD; i++)
		text = arena_printf(arena, "%s, \"%s\": %.9g", text,
		                    field[i].key,
		                    *(double *)((char *)d + field[i].at));
	return arena_printf(arena, "%s%s%s}", text,
	                    scales_json("scale", d->scale, arena),
	                    scales_json("scale16", d->scale16, arena));
}

struct profile_reader {
	struct device_profile *d;
	struct measured *measured;
	size_t cap;
	Arena *arena;
	double mean, least;             /* seconds of all together */
};

struct measured_row {
	struct measured m;
	double mean;
	double sent;                    /* bytes: its time is the link's */
};

/* 0 and more. */
static bool
read_amount(struct json *j, double *x)
{
	return json_number(j, x) && *x >= 0;
}

/* A build with other ops may have written it: those are passed over. */
static bool
scale_member(struct json *j, const char *key, void *data)
{
	double *scale = data, x;

	if (!read_amount(j, &x))
		return false;
	scale[op_find(key)] = x;
	return true;
}

static bool
peak_member(struct json *j, const char *key, void *data)
{
	struct device_profile *d = data;

	return strcmp(key, "f32") ? json_skip(j)
		: read_amount(j, &d->product_flops);
}

static bool
measured_member(struct json *j, const char *key, void *data)
{
	struct measured_row *row = data;
	struct measured *m = &row->m;

	if (!strcmp(key, "op")) {
		char *s;

		if (!json_string(j, &s))
			return false;
		m->op = op_find(s);
		return true;
	}
	return !strcmp(key, "least") ? read_amount(j, &m->sec)
		: !strcmp(key, "seconds") ? read_amount(j, &row->mean)
		: !strcmp(key, "flops") ? read_amount(j, &m->flops)
		: !strcmp(key, "bytes") ? read_amount(j, &m->bytes)
		: !strcmp(key, "sent_bytes") ? read_amount(j, &row->sent)
		: json_skip(j);
}

static bool
measured_element(struct json *j, void *data)
{
	struct profile_reader *r = data;
	struct measured_row row = { .m.sec = -1 };
	size_t n = (size_t)r->d->nmeasured;

	if (!json_object(j, measured_member, &row))
		return false;
	if (row.m.op == OP_NONE || row.m.sec < 0 || row.sent > 0)
		return true;
	r->measured = arena_grow(r->arena, r->measured, n, &r->cap, n + 1,
	                         sizeof row.m);
	r->measured[n] = row.m;
	r->d->nmeasured++;
	r->mean += row.mean;
	r->least += row.m.sec;
	return true;
}

static bool
profile_member(struct json *j, const char *key, void *data)
{
	struct profile_reader *r = data;

	if (!strcmp(key, "name")) {
		char *s;

		if (!json_string(j, &s))
			return false;
		r->d->name = s;
		/* plans repeat it as it is */
		return strspn(s, NAME_CHARS) == strlen(s);
	}
	for (int i = 0; i < NFIELD; i++)
		if (!strcmp(key, field[i].key))
			return read_amount(j, (double *)((char *)r->d
			                                 + field[i].at));
	return !strcmp(key, "scale")
		? json_object(j, scale_member, r->d->scale)
		: !strcmp(key, "scale16")
		? json_object(j, scale_member, r->d->scale16)
		: !strcmp(key, "peak_flops")
		? json_object(j, peak_member, r->d)
		: !strcmp(key, "cold") ? read_amount(j, &r->d->cold)
		: !strcmp(key, "ops") ? json_list(j, measured_element, r)
		: json_skip(j);
}

static int
by_work(const void *p, const void *q)
{
	const struct measured *a = p, *b = q;

	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	if (a->flops != b->flops)
		return a->flops < b->flops ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Sorted, equal work once, with the mean of its times. */
static int
merge_measured(struct measured *m, int n)
{
	int out = 0;

	if (n)
		qsort(m, (size_t)n, sizeof *m, by_work);
	for (int i = 0, k; i < n; i = k) {
		double sum = 0;

		for (k = i; k < n && by_work(&m[i], &m[k]) == 0; k++)
			sum += m[k].sec;
		m[out] = m[i];
		m[out++].sec = sum / (k - i);
	}
	return out;
}

double
device_measured(const struct device_profile *d, Op op, double flops,
                double bytes)
{
	struct measured key = { .op = op, .flops = flops, .bytes = bytes };
	const struct measured *m = d->nmeasured
		? bsearch(&key, d->measured, (size_t)d->nmeasured, sizeof key,
		          by_work) : NULL;

	return m ? m->sec : -1;
}

bool
device_parse(struct device_profile *d, const char *text, size_t n, Arena *arena)
{
	struct profile_reader r = { .d = d, .arena = arena };
	struct json j = { .text = arena_alloc(arena, n + 1), .size = n };

	*d = (struct device_profile){ 0 };
	memcpy(j.text, text, n);
	if (!json_object(&j, profile_member, &r) || !json_end(&j))
		return false;
	d->spread = r.least > 0 ? r.mean / r.least : 0;
	d->measured = r.measured;
	d->nmeasured = merge_measured(r.measured, d->nmeasured);
	/* measurements of a model say little of what they do not hold */
	if (d->vector_flops <= 0 && d->nmeasured) {
		d->vector_flops = d->product_flops / 5;
		d->serial = 1;
	}
	if (d->product_flops16 <= 0)
		d->product_flops16 = d->product_flops;
	return d->name && d->product_flops > 0 && d->vector_flops > 0
		&& d->bandwidth > 0;
}

/* ---- by name ---- */

/* Text of a file; NULL if it cannot be read. */
static char *
read_file(const char *path, size_t *n, Arena *arena)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t cap = 0;

	for (*n = 0; f && *n < FILE_MAX;) {
		size_t got;

		text = arena_grow(arena, text, *n, &cap, *n + 4096, 1);
		got = fread(text + *n, 1, cap - *n - 1, f);
		*n += got;
		if (!got)
			break;
	}
	if (!f || ferror(f)) {
		if (f)
			fclose(f);
		return NULL;
	}
	fclose(f);
	text[*n] = 0;
	return text;
}

const struct device_profile *
device_find(const char *name, Diag *diag, Arena *arena)
{
	const struct device_profile *known;
	struct device_profile *d;
	char *text;
	size_t n;

	if (!strcmp(name, "cpu"))
		return &device_default;
	known = device_known(name);
	if (known)
		return known;
	text = read_file(name, &n, arena);
	if (!text) {
		diag_error(diag, "--device '%s': %s", name, strerror(errno));
		diag_more(diag, "expected cpu, host, a GPU (%s), or a file",
		          device_names(arena));
		return NULL;
	}
	d = arena_alloc(arena, sizeof *d);
	if (device_parse(d, text, n, arena)) {
		if (d->cold > 0)
			diag_warn(diag, "--device '%s': the profile measured a "
			          "single step, which includes loading code "
			          "and touching memory for the first time; run "
			          "ckrun --profile with more steps", name);
		return d;
	}
	diag_error(diag, "--device '%s': expected a file written by ckrun "
	           "--profile, or a JSON object such as %s", name,
	           device_json(&device_default, arena));
	return NULL;
}
