/* The connection to the server: it comes back by itself, and a flood of messages becomes a steady stream. */

const FIRST_WAIT = 200, LONGEST_WAIT = 2000; // ms between attempts
const BETWEEN = 100; // ms between two settings: ten a second
const TURN = 600; // ms that a training has before the next setting takes its place, unless it is done earlier
const LOOK = 25; // ms

/* Calls `work` at once, and again while it is asked for: when the last work is `done`, at most every 100 ms; or
   when that had its turn. So curves are seen to move while a slider does. The last call always counts. */
export function throttled(work, done) {
  let last = -Infinity, timer = null;
  const go = () => {
    const since = performance.now() - last;
    if (since < BETWEEN || (since < TURN && !done())) { timer = setTimeout(go, LOOK); return; }
    [timer, last] = [null, performance.now()];
    work();
  };
  return () => { if (timer === null) timer = setTimeout(go, 0); };
}

/* `open()` is called after every connection made, `lost()` when one ends, `message(data)` for each message. */
export function connect({ open, lost, message }) {
  let socket = null, wait = FIRST_WAIT;
  const address = new URL("ws", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  function attempt() {
    socket = new WebSocket(address);
    socket.onopen = () => { wait = FIRST_WAIT; open(); };
    socket.onmessage = (event) => message(JSON.parse(event.data));
    socket.onclose = () => {
      lost();
      setTimeout(attempt, wait);
      wait = Math.min(LONGEST_WAIT, 2 * wait);
    };
  }
  attempt();
  return {
    send(data) {
      const ready = socket.readyState === WebSocket.OPEN;
      if (ready) socket.send(JSON.stringify(data));
      return ready;
    },
  };
}

/* JSON from the server, asked for again until it answers. */
export async function fetched(path, trouble) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(LONGEST_WAIT, 2 * wait)) {
    try {
      const answer = await fetch(path);
      if (answer.ok) return await answer.json();
    } catch (problem) { /* no server yet: below */ }
    trouble();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
