#include "ir/base/watch.h"
#include "runtime/support/now.h"

#include <math.h>

bool
watch_over(struct watch *w)
{
	if (!w)
		return false;
	if (!w->late && w->end > 0 && now_sec() >= w->end)
		w->late = true;
	return w->late || watch_off(w);
}

double
watch_left(const struct watch *w)
{
	return w && w->end > 0 ? fmax(w->end - now_sec(), 0) : INFINITY;
}

void
watch_begin(struct watch *w, double sec)
{
	if (w && sec > 0 && w->end <= 0)
		w->end = now_sec() + sec;
}
