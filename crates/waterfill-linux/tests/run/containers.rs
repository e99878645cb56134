//! Tests of the daemon on hosts with containers, whose processes have network namespaces of their own.

use super::{DROP_IN, Service, UNIT, capabilities, kernel, line, listening, silent, tables};

#[test]
fn with_the_drop_in_servers_of_other_namespaces_answer_without_a_restart() {
    let Some(namespaces) = line(&["setpriv"]) else { return };
    let Some(mut service) = Service::new(&namespaces) else { return };
    service.write(&tables(&namespaces, 0.9, ""));
    let server = listening(&namespaces, 'b');
    let allowed = capabilities(&[UNIT, DROP_IN]);
    service.start(&format!("setpriv --bounding-set=-all{allowed} --inh-caps=-all --no-new-privs"));
    // Before Linux 6.12 the kernel lets no program do that.
    assert_eq!(silent(&namespaces, &service, 'b'), usize::from(kernel() < (6, 12)), "{}", service.log());
    assert!(!service.log().contains("network namespaces without CAP_SYS_ADMIN"), "{}", service.log());
    drop(server);
    service.stop();
}
