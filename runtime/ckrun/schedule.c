#include "runtime/ckrun/schedule.h"

#include <stdio.h>
#include <string.h>

#include "runtime/support/number.h"

/* By enum ckr_schedule_kind.  period: it has no N, may have one, needs one;
 * factor: its F by default, 0: it has none; least, most: F's. */
static const struct {
	const char *name;
	enum { NONE, MAY, NEEDED } period;
	double factor, least, most;
	bool ends;                      /* at `total` */
} kinds[] = {
	[CKR_CONSTANT_LR] = { "constant", NONE, 0, 0, 0, false },
	[CKR_LINEAR_LR] = { "linear", NONE, 0, 0, 0, true },
	[CKR_COSINE_LR] = { "cosine", NONE, 0, 0, 0, true },
	[CKR_WSD_LR] = { "wsd", MAY, 0, 0, 0, true },
	[CKR_STEP_LR] = { "step", NEEDED, 0.1, 0, 1, false },
	[CKR_RESTARTS_LR] = { "restarts", NEEDED, 1, 1, 1000, false },
};

/* N[,F] */
static bool
parse_period(const char *text, size_t kind, struct ckr_schedule *s)
{
	const char *comma = strchr(text, ',');
	char n[24];
	int size = comma ? (int)(comma - text) : (int)strlen(text);

	if (size >= (int)sizeof(n))
		return false;
	snprintf(n, sizeof(n), "%.*s", size, text);
	if (!number_whole(n, (uint64_t)1 << 53, &s->period) || !s->period)
		return false;
	return !comma || (kinds[kind].factor > 0
		&& number_real(comma + 1, &s->factor)
		&& s->factor >= kinds[kind].least
		&& s->factor <= kinds[kind].most);
}

bool
schedule_parse(const char *text, struct ckr_schedule *s)
{
	size_t n = strcspn(text, ":");

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (strncmp(kinds[k].name, text, n) || kinds[k].name[n])
			continue;
		s->kind = (enum ckr_schedule_kind)k;
		s->period = 0;
		s->factor = kinds[k].factor;
		return text[n] ? kinds[k].period != NONE
			&& parse_period(text + n + 1, k, s)
			: kinds[k].period != NEEDED;
	}
	return false;
}

const char *
schedule_name(const struct ckr_schedule *s)
{
	return kinds[s->kind].name;
}

struct ckr_schedule
schedule_for(const struct ckrun_options *o, uint64_t total)
{
	struct ckr_schedule s = o->schedule;

	s.lr = o->hyper.lr;
	if (!s.total)
		s.total = total;
	if (!s.period)
		s.period = s.total < 10 ? 1 : s.total / 5;
	return s;
}

uint64_t
schedule_end(const struct ckrun_options *o, uint64_t total)
{
	return kinds[o->schedule.kind].ends ? schedule_for(o, total).total : 0;
}
