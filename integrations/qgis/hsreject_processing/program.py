"""The installed hsreject program: where it is, and how it runs with a live log and cancel."""

# flake8: noqa: E501 (lines of up to 100 characters)
import os
import shlex
import shutil
import signal
from pathlib import Path

from qgis.core import QgsProcessingException, QgsSettings
from qgis.PyQt.QtCore import QProcess, QProcessEnvironment

SETTING = "hsreject/executable"  # where the program is remembered

# QGIS sets these for its own Python, GDAL and PROJ; hsreject brings others, which they would break.
_OF_QGIS = (
    "PYTHONHOME", "PYTHONPATH", "GDAL_DATA", "GDAL_DRIVER_PATH", "PROJ_LIB", "PROJ_DATA",
)  # fmt: skip
_TOLD = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"}
_PATIENCE = 10_000  # milliseconds that a cancelled program has to clean up
_SAYS = "hsreject: "  # how its warnings and errors begin
_NAME = "hsreject.exe" if os.name == "nt" else "hsreject"
_USUAL = (  # below the home of a user: environments of pip, pipx, uv and conda
    "hsreject", ".venv", "venv", ".local", ".local/pipx/venvs/hsreject",
    ".local/share/pipx/venvs/hsreject", "pipx/venvs/hsreject", ".local/share/uv/tools/hsreject",
    "AppData/Roaming/uv/tools/hsreject", "*conda*/envs/*", "*forge*/envs/*", "*conda*", "*forge*",
    "AppData/Local/*conda*/envs/*", "AppData/Local/*forge*/envs/*", "Envs/*", ".virtualenvs/*",
)  # fmt: skip


def find_program(given):
    """Return the path of the program: as given, as remembered, on the path, in usual places."""
    for name in (given, QgsSettings().value(SETTING, ""), "hsreject"):
        found = shutil.which(str(Path(name).expanduser())) if name else None
        if found:
            return found
        if name and name == given:
            break  # who names a program means that one
    else:
        for folder in _USUAL:
            for inside in ("bin", "Scripts"):
                for found in sorted(Path.home().glob(f"{folder}/{inside}/{_NAME}")):
                    return str(found)
    raise QgsProcessingException(
        f"The program '{given or 'hsreject'}' was not found. Install hsreject in an environment of "
        "its own (python3 -m venv ~/hsreject, then ~/hsreject/bin/pip install hsreject), or give "
        "the path of its executable under the advanced parameters."
    )


def run_program(program, arguments, feedback):
    """Run the program, show its lines as they come, and end it when the user cancels."""
    feedback.pushCommandInfo(shlex.join([program, *arguments]))
    process = QProcess()
    environment = QProcessEnvironment.systemEnvironment()
    for name in _OF_QGIS:
        environment.remove(name)
    for name, text in _TOLD.items():
        environment.insert(name, text)
    process.setProcessEnvironment(environment)
    process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
    process.start(program, arguments)
    if not process.waitForStarted():
        raise QgsProcessingException(f"{program} could not be started: {process.errorString()}.")
    process.closeWriteChannel()
    last = _shown(process, feedback)
    if feedback.isCanceled():
        raise QgsProcessingException("Cancelled.")
    if process.exitStatus() != QProcess.ExitStatus.NormalExit or process.exitCode():
        raise QgsProcessingException(last.removeprefix(_SAYS) or f"{program} failed.")
    QgsSettings().setValue(SETTING, program)


def _shown(process, feedback):
    """Show the lines of a running program, and return the last, which may be its error."""
    last = ""
    for line in _lines(process, feedback):
        if last.startswith(_SAYS):
            feedback.pushWarning(last.removeprefix(_SAYS))
        if line.endswith(" ..."):  # a stage begins
            feedback.setProgressText(line)
        elif not line.startswith(_SAYS):
            feedback.pushConsoleInfo(line)
        last = line
    return last


def _lines(process, feedback):
    """Yield the lines of a running program, and stop it when the user cancels."""
    rest = b""
    while True:
        running = process.state() != QProcess.ProcessState.NotRunning
        if running and feedback.isCanceled():
            _stop(process)
        if running:
            process.waitForReadyRead(200)
        *lines, rest = (rest + bytes(process.readAll())).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if not running:
            break
    if rest:
        yield rest.decode("utf-8", "replace")


def _stop(process):
    """End a program as Ctrl-C does, so that it removes what it has half written."""
    if os.name != "nt":  # where a program without a console cannot be asked
        os.kill(int(process.processId()), signal.SIGINT)
        if process.waitForFinished(_PATIENCE):
            return
    process.terminate()
    if not process.waitForFinished(_PATIENCE):
        process.kill()
        process.waitForFinished(_PATIENCE)
