#!/bin/bash
# A sweep on several machines of a SLURM cluster. Change the lines below, then, in a folder all machines share:
#
#   sbatch examples/slurm_sweep.sh examples/kou2023_flips.toml --grid data.n=20:200:8log --grid data.signal_norm=1:8:20log --out out/phase
#
# Submitted again, it goes on where it stopped.
#SBATCH --job-name=featlab
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail

file="$PWD/scheduler-$SLURM_JOB_ID.json"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -f "$file"' EXIT

# One scheduler, on the first machine. It says in a file, which all can read, where it listens.
srun --nodes=1 --ntasks=1 --cpus-per-task=1 --overlap dask scheduler --port 0 --no-dashboard --scheduler-file "$file" &

# On every machine a worker for each core. On machines with GPUs, one worker for each GPU instead:
# --ntasks-per-node and --gpus-per-task above, and --nworkers 1 here.
srun --overlap dask worker --scheduler-file "$file" --nworkers "$SLURM_CPUS_PER_TASK" --nthreads 1 --no-dashboard &

until [ -s "$file" ]; do sleep 0.2; done
featlab sweep "$@" --cluster "$file"
