/* sd_notify through libsystemd if this build has it. A failure is not ours to mend: the service
 * manager is told less. */
#include "supervisor/notify.h"

#ifdef HAVE_LIBSYSTEMD
#include <inttypes.h>
#include <systemd/sd-daemon.h>

#include "common/base/clock.h"

void notify_status(const char *status)
{
    (void)sd_notifyf(0, "STATUS=%s", status);
}

void notify_ready(const char *status)
{
    (void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(const char *status)
{
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=%s",
                     clock_mono_ns() / 1000, status);
}

void notify_stopping(const char *status)
{
    (void)sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}
#else
void notify_status(const char *status)
{
    (void)status;
}

void notify_ready(const char *status)
{
    (void)status;
}

void notify_reloading(const char *status)
{
    (void)status;
}

void notify_stopping(const char *status)
{
    (void)status;
}
#endif
