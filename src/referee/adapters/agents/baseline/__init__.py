"""``baseline``: the built-in agent. No model, no chance: the floor of every board and the free check for maintainers.

It runs inside the disposable machine, copied out of this installation, so it uses only relative imports, the
standard library, ``markdown_it`` and ``docutils``; it never imports ``referee``. It knows kinds, never names.

The map::

    __main__.py      main(): first line at once, mission, plan, work, report (also at the deadline and after a crash)
    mission.py       what the mission says, and the clock
    terminal.py      runs a command as ``$ command``, streams it, keeps its ends, kills its process group
    report.py        the draft of the report: only observed facts go in; written atomically
    documents.py     README -> blocks with headings, language and the sentence before (markdown-it, docutils)
    blocks.py        what a block is: shell session, Python, doctest, JavaScript, data
    commands.py      what a documented shell command is for, and whether it can be run here
    troubles.py      THE TABLE: pattern on output -> diagnosis sentence -> name of a remedy
    remedies.py      what each remedy does (system side); remedies_python.py, remedies_node.py (registries)
    troubles_native.py, remedies_native.py   rows and remedies of the other toolchains, and blocked registries
    debian.py        which Debian package ships a header, library, tool (apt-file: general, name-free)
    services.py      databases and queues from Debian, and how to start each
    workshop.py      the bench everything is done on: ``run`` a command, ``work`` one through the table, ``prove``
    examples.py      the README blocks of one language: tried together, reduced to what runs, made steady
    quickstart.py    README -> a verification plan: examples, commands, servers
    shows.py         whether an output shows that work was done
    proof.py         the verification from fresh shells until two runs agree
    drive.py         carries an ecosystem's Plan out
    payload/         programs copied to /work/project/verify; they outlive the agent, the harness runs them again
    ecosystems/      one module per ecosystem

The seam for a further ecosystem: add ``ecosystems/NAME.py`` with one function and name the module in
``ecosystems.MODULES`` (a tuple; the order breaks ties)::

    def plan(shop: Workshop) -> Plan | None:
        "None when the tree at ``shop.project`` is not of this ecosystem; else how to bring it up."

``Plan`` (``ecosystems/plan.py``) is data: how sure the module is (``confidence``, 0-100: a manifest in the root is 60,
a lock file or a build entry beside it more, a Makefile alone 20), which tools it needs (command -> Debian package), the
install steps, directories to put on PATH, the documented languages whose README blocks it can run, test commands with a
function that counts passed tests in their output (0 or None: nothing proved), and start commands for servers. Steps
are shell lines run in the project through the trouble table. Where data is not enough, ``Plan.prepare`` is called with
the shop before the steps. ``drive.bring_up`` does the rest: install, README commands, tests, server, proof, report.
Plans are made by looking at files only (no commands); anything that runs belongs in a step or in ``prepare``.
"""

VERSION = "1"
