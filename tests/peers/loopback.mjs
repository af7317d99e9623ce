// For `node --import`: every server of the process listens on the loopback interface, whatever interface it asks for.
// The conformance suite's servers ask for all of them, and so does server-everything. The port is bound in the same step as
// ever; naming a host would make that asynchronous, and the suite reads the port at once.
// A program that is told PORT=0 does not say which port it got, so that is said here.

import { Server } from "node:net";

const listen = Server.prototype._listen2;
Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  // A pipe has no port.
  if (port < 0) return listen.call(this, address, port, addressType, ...rest);
  if (process.env.PORT === "0") {
    this.once("listening", () => console.error(`listening at http://127.0.0.1:${this.address().port}`));
  }
  return listen.call(this, "127.0.0.1", port, 4, ...rest);
};
