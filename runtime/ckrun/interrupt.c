#include "runtime/ckrun/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_bool caught;

/* A hangup that is ignored, as under nohup, stays so: a signal that is blocked
 * would be waited for all the same. */
static sigset_t
signals(void)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	return set;
}

static void *
wait_for_them(void *unused)
{
	sigset_t set = signals();
	int sig;

	(void)unused;
	while (sigwait(&set, &sig) == 0)
		if (atomic_exchange(&caught, true)) {
			signal(sig, SIG_DFL);
			pthread_sigmask(SIG_UNBLOCK, &set, NULL);
			kill(getpid(), sig);
		}
	return NULL;
}

void
interrupt_begin(void)
{
	sigset_t set = signals();
	pthread_t thread;

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* a limit on the size of files is an error of a write, and reported */
	signal(SIGXFSZ, SIG_IGN);
	if (pthread_create(&thread, NULL, wait_for_them, NULL))
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	else
		pthread_detach(thread);
}

bool
interrupted(void)
{
	return atomic_load(&caught);
}
