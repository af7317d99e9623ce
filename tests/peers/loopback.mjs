// For `node --import`: every server of the process listens on the loopback interface, whatever interface it asks for.
// The conformance suite's servers ask for all of them. The port is bound in the same step as ever; naming a host would make
// that asynchronous, and the suite reads the port at once.

import { Server } from "node:net";

const listen = Server.prototype._listen2;
Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  // Without a port it is a pipe.
  return port < 0 ? listen.call(this, address, port, addressType, ...rest) : listen.call(this, "127.0.0.1", port, 4, ...rest);
};
