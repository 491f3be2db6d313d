"""Check that a kernel evaluates an expression, and that it can be interrupted."""

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel()
try:
    results = []
    client.execute_interactive(
        "6 * 7",
        timeout=60,
        output_hook=lambda message: results.append(message["content"].get("data", {})),
    )
    assert {"text/plain": "42"} in results, results
    client.execute("print('begun'); import time; time.sleep(600)")
    while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=60)
    assert reply["content"].get("ename") == "KeyboardInterrupt", reply
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
