import { whole, like, either, listOf, count, each, words, type Plain } from "./meaning.ts";

export const cloud: readonly Plain[] = [
  {
    tools: ["aws", "gcp", "azure", "cloud", "kubernetes"],
    operations: [
      "ec2.describe_instances",
      "describe_instances",
      "rds.describe_db_instances",
      "s3.list_buckets",
      "cloudwatch.get_metric_data",
      "ecs.list_services",
      "list_pods",
    ],
    params: each(
      words(
        "id ids name names instance_ids group vpc_id cluster service namespace region zone project state status metric since until limit max_results next_token cursor",
      ),
      either(count, like(/^[A-Za-z0-9_.:/@=+-]{1,200}$/), listOf(like(/^[A-Za-z0-9_.:/@+-]{1,200}$/), 10_000)),
    ),
    samples: [{}, { ids: ["i-1", "i-2"], region: "eu-west-1", limit: 20 }],
  },
  {
    tools: ["aws.sandbox", "gcp.sandbox", "azure.sandbox", "cloud.sandbox", "kubernetes.sandbox"],
    operations: ["start_instance", "stop_instance", "reboot_instance", "scale_deployment", "restart_deployment"],
    params: { ...each(["id", "name", "namespace"], like(/^[A-Za-z0-9_.:/-]{1,100}$/)), replicas: whole(0, 3) },
    samples: [{ id: "i-1" }, { name: "web", namespace: "shop", replicas: 3 }],
  },
];
