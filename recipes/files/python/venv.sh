# shellcheck shell=sh
# Login shells come here with a fresh PATH: put the image's Python first again.
case ":$PATH:" in
*:/opt/venv/bin:*) ;;
*) PATH=/opt/venv/bin:$PATH ;;
esac
export PATH VIRTUAL_ENV=/opt/venv
