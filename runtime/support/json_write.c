/* A writer of JSON. */
#include "runtime/support/json_write.h"
#include "runtime/support/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

static const struct {
	const char *comma, *first, *last;
} gap[] = {
	[JSON_TIGHT] = { ",", "", "" },
	[JSON_SPACED] = { ", ", "", "" },
	[JSON_LINES] = { ",\n", "\n", "\n" },
	[JSON_INDENTED] = { ",\n  ", "\n  ", "\n" },
	[JSON_TABBED] = { ",\n\t", "\n\t", "\n" },
	[JSON_ROWS] = { ",\n", "\n", "" },
	[JSON_WRAPPED] = { ",\n", "", "" },
};

static void
begin_value(struct json_out *o, const char *key)
{
	enum json_style style = o->level[o->depth].style;

	if (o->depth)
		fputs(o->more ? gap[style].comma : gap[style].first, o->f);
	o->more = true;
	if (!key)
		return;
	utf8_json(o->f, key);
	fputs(o->tight ? ":" : ": ", o->f);
}

void
json_open(struct json_out *o, const char *key, char bracket,
          enum json_style style)
{
	begin_value(o, key);
	putc(bracket, o->f);
	o->level[++o->depth] = (struct json_level){
		bracket == '{' ? '}' : ']', style
	};
	o->more = false;
}

void
json_close(struct json_out *o)
{
	fputs(gap[o->level[o->depth].style].last, o->f);
	putc(o->level[o->depth--].end, o->f);
	o->more = true;
}

void
json_text(struct json_out *o, const char *key, const char *text)
{
	begin_value(o, key);
	utf8_json(o->f, text);
}

void
json_bool(struct json_out *o, const char *key, bool x)
{
	json_print(o, key, "%s", x ? "true" : "false");
}

void
json_int(struct json_out *o, const char *key, int64_t x)
{
	json_print(o, key, "%" PRId64, x);
}

void
json_id(struct json_out *o, const char *key, int64_t x)
{
	if (x < 0)
		json_text(o, key, NULL);
	else
		json_int(o, key, x);
}

void
json_ids(struct json_out *o, const char *key, const int64_t *x, int64_t n)
{
	json_open(o, key, '[', o->tight ? JSON_TIGHT : JSON_SPACED);
	for (int64_t i = 0; i < n; i++)
		json_id(o, NULL, x[i]);
	json_close(o);
}

void
json_real(struct json_out *o, const char *key, int digits, double x)
{
	if (isfinite(x))
		json_print(o, key, "%.*g", digits, x);
	else
		json_text(o, key, NULL);
}

void
json_print(struct json_out *o, const char *key, const char *fmt, ...)
{
	va_list ap;

	begin_value(o, key);
	va_start(ap, fmt);
	vfprintf(o->f, fmt, ap);
	va_end(ap);
}
