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
	static const int number[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction a = { .sa_handler = on_signal,
	                       .sa_flags = SA_RESETHAND };

	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		sigaction(number[i], &a, NULL);
	return &stopped;
}
