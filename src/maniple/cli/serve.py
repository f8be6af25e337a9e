"""The HTTP service as a foreground program."""

import asyncio

from maniple.cli.listening import (
    Server,
    address_of,
    bind,
    configuration,
    configure_service_logs,
    refuse_strangers,
    say_to_whom,
)
from maniple.cli.loading import loading
from maniple.cli.opening import announce
from maniple.cli.screens import Screens
from maniple.config import Settings


async def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; raises the `ManipleError` that keeps the team from opening."""
    await refuse_strangers(settings)
    screens = Screens.of_this_process()
    progress = screens.progress()
    with await asyncio.to_thread(bind, settings.server) as listener:
        try:
            progress.step("starting the service")
            with loading():
                from maniple.api import create_app

            configure_service_logs(settings)
            app = create_app(settings, progress=progress)
            # Entered here and not by uvicorn, which would print an error's stack instead of its sentence.
            async with app.router.lifespan_context(app):
                progress.close()
                service = app.state.service
                announce(service.runtime.answering, service.runtime.notices, screens)
                where = address_of(listener, settings.server)
                screens.note(f"Serving on {where} (documented at /docs). Ctrl-C stops.")
                say_to_whom(await service.store.keys.list(), settings.server, screens)
                await Server(configuration(app), service.engine.drain).serve(sockets=[listener])
        finally:
            progress.close()
    return 0
