"""boto3, which asks for a name of its own for each bucket."""

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError


def handler(event, context):
    with open("/tmp/ca.pem", "w") as file:
        file.write(event["ca"])
    client = boto3.client(
        "s3",
        region_name="eu-west-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        verify="/tmp/ca.pem",
        config=Config(connect_timeout=20, retries={"total_max_attempts": 1}, s3={"addressing_style": "virtual"}),
    )
    try:
        client.create_bucket(Bucket="photos", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        client.put_object(Bucket="photos", Key="a/cat.txt", Body=b"meow" * event["times"])
        listed = [item["Key"] for item in client.list_objects_v2(Bucket="photos")["Contents"]]
        read = client.get_object(Bucket="photos", Key="a/cat.txt")["Body"].read()
    except BotoCoreError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"listed": listed, "bytes": len(read), "begins": read[:4].decode()}
