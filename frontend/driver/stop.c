#include "frontend/driver/stop.h"

#include <stddef.h>

static volatile sig_atomic_t stopped;

static void
on_signal(int number)
{
	stopped = number;
}

const volatile sig_atomic_t *
stop_on_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal,
	                       .sa_flags = SA_RESETHAND }, hangup;

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &a, NULL);
	/* a limit on file sizes becomes a write error, which is reported; the C
	 * compiler inherits this */
	signal(SIGXFSZ, SIG_IGN);
	return &stopped;
}
