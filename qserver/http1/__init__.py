"""A small HTTP/1.1 server for Trio, built for many short requests. It serves an `Application`.

    await serve(application, ServerOptions(port=8000), stop=stop, report=print)

The server reads and writes sockets directly and parses heads with llhttp (httptools). It runs one
task per connection and none per request. It is strict: it refuses every request that another server
could read differently. It does not speak HTTP/2: put a proxy in front, or use an ASGI server. Of
other protocols it knows nothing: an application may take over a connection (`Upgrade`).

    application  the interface to the application   server      bind, start, accept, drain
    connection   requests one after the other       state       its states
    head, heads  bytes to checked requests          listening   sockets
    body         where a body ends                  context     state shared by connections
    incoming     a body that is still arriving      reactor     one wait for all connections
    answer       heads of answers                   transport   plain sockets
    headers      headers of answers                 tls         the same over TLS
    parts        streamed answers                   refusal     the server's own answers
    addresses    whose connection makes room        moving      requests of other processes
"""

from __future__ import annotations

from qserver.http1.addresses import network_of as network_of
from qserver.http1.application import PATH as PATH
from qserver.http1.application import PENDING as PENDING
from qserver.http1.application import Answer as Answer
from qserver.http1.application import Application as Application
from qserver.http1.application import Client as Client
from qserver.http1.application import Elsewhere as Elsewhere
from qserver.http1.application import Endpoint as Endpoint
from qserver.http1.application import Hold as Hold
from qserver.http1.application import IncomingBody as IncomingBody
from qserver.http1.application import Parts as Parts
from qserver.http1.application import Request as Request
from qserver.http1.application import Respond as Respond
from qserver.http1.application import Response as Response
from qserver.http1.application import Upgrade as Upgrade
from qserver.http1.application import Values as Values
from qserver.http1.application import Varying as Varying
from qserver.http1.application import hold_anything as hold_anything
from qserver.http1.application import request_id_of as request_id_of
from qserver.http1.counters import Counters as Counters
from qserver.http1.counters import ServerStatistics as ServerStatistics
from qserver.http1.errors import AnswerCut as AnswerCut
from qserver.http1.errors import BodyRefused as BodyRefused
from qserver.http1.errors import ClientGone as ClientGone
from qserver.http1.errors import InvalidAnswer as InvalidAnswer
from qserver.http1.guests import BelongsElsewhere as BelongsElsewhere
from qserver.http1.head import head_of as head_of
from qserver.http1.headers import Headers as Headers
from qserver.http1.listening import accept_for_ever as accept_for_ever
from qserver.http1.listening import bind_now as bind_now
from qserver.http1.listening import close_all as close_all
from qserver.http1.listening import listen_all as listen_all
from qserver.http1.moving import FORWARD_BYTES_MAX as FORWARD_BYTES_MAX
from qserver.http1.moving import Host as Host
from qserver.http1.moving import Moved as Moved
from qserver.http1.moving import Mover as Mover
from qserver.http1.moving import relay as relay
from qserver.http1.moving import relay_sockets as relay_sockets
from qserver.http1.moving import released as released
from qserver.http1.options import ServerOptions as ServerOptions
from qserver.http1.reactor import BatchPort as BatchPort
from qserver.http1.reactor import Reactor as Reactor
from qserver.http1.refusal import Refusal as Refusal
from qserver.http1.server import serve as serve
from qserver.http1.tls import TlsTransport as TlsTransport
from qserver.http1.tls import tls_context as tls_context
from qserver.http1.transport import PlainTransport as PlainTransport
from qserver.http1.transport import Transport as Transport
from qserver.http1.turns import NoTurns as NoTurns
from qserver.http1.turns import Turns as Turns
