// Hands requests on to a server that wants a bearer token, for clients that cannot send one: everything else,
// `Host` and `Origin` too, stays as the client wrote it. Arguments: the port to listen at (0: any), the address
// to hand on to, the file that holds the token. Prints the port.
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";

const [port, target, file] = process.argv.slice(2);
const [host, targetPort] = target.split(":");
const authorization = `Bearer ${readFileSync(file, "utf8").trim()}`;

const server = createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization };
  const options = { host, port: targetPort, method: asked.method, path: asked.url, headers, setHost: false };
  const handed = request(options, (answered) => {
    answer.writeHead(answered.statusCode, answered.headers);
    answered.pipe(answer);
  });
  handed.on("error", () => answer.destroy());
  answer.on("close", () => handed.destroy());
  asked.pipe(handed);
});
server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
